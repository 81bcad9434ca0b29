"""mpi-operator's MPIJob v2beta1: a launcher that a batch/v1 Job retries, and workers by SSH."""
