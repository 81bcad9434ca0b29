"""The embedded cluster as ``run`` and ``up`` start it: options, sessions, and clusters by name."""
