"""Hostile objects, generated from the schemas of the CRDs, for all readers."""
