"""mpi-operator and dlctl side by side: the same MPIJobs, and what each makes of them."""
