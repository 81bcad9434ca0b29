"""The built-in kinds: which are served, their defaults and their rules."""
