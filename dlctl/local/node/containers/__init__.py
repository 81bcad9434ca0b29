"""One container: its program, files, devices, limits, output, probes and commands beside it."""
