"""Statuses of jobs on the wire: what all dialects write alike, and dlctl's own state in them."""
