"""mpi-operator's first MPIJob: one pod template for the launcher and the workers."""
