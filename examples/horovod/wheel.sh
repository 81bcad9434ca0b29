#!/bin/sh
# Compiles Horovod into a wheel in this directory, against the TensorFlow of the environment that the
# given pip serves: wheel.sh PIP...
#
# Takes minutes and a GB of memory for each job; nothing has been built of it for anyone.
set -e
export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITH_GLOO=1
export HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITHOUT_PYTORCH=1
# What make says of its own jobs to those it starts is not for the one in there.
export MAKEFLAGS="-j${JOBS:-2}" MAKELEVEL=
exec "$@" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation horovod==0.28.1
