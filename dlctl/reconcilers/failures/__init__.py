"""Why an attempt of a job failed, and what follows from it."""
