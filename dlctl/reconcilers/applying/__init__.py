"""Plans are applied: the one place of the order of writes, and what they need."""
