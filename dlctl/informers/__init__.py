"""A local, indexed, eventually consistent copy of the API server's objects."""
