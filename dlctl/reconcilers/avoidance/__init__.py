"""Attempts that make way for nodes that are draining, and pods that avoid nodes at fault."""
