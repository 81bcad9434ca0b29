"""The failure policy in the specs of jobs: its schema, its reader, and its effects."""
