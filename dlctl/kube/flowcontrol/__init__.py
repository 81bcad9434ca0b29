"""How many requests may be sent, and when: rates, and concurrent writes."""
