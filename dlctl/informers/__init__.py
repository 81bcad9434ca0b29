"""A local, indexed, eventually consistent copy of what the API server holds."""
