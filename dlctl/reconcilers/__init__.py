"""Deciding what a job needs now (pure), and doing it (I/O)."""
