"""What users see of running jobs: progress, output, and the outcome."""
