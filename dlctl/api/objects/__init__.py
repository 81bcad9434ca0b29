"""Projections of objects in the cluster: those fields of pods, nodes and others that are read."""
