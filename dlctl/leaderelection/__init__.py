"""Which of several controllers does the work, and how the others know that it does not."""
