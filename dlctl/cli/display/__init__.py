"""The display of running jobs: progress, output, and the outcome."""
