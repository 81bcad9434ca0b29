"""Why an attempt of a job ended, and what follows from it."""
