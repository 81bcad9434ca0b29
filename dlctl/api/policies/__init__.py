"""The policies of a job, as users set them: when it runs, starts together, and fails."""
