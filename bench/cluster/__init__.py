"""Operators on a real API server, timed from outside, beside plain writers."""
