"""Attempts that make way for nodes that are going, and pods that avoid nodes at fault."""
