"""The policies of a job, as users set them: how it runs, is scheduled, scales and fails."""
