"""Addresses, names and connections of pods, in the node and to the outside."""
