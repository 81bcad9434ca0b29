"""Hostile objects, made from the schemas of the CRDs, against all that reads them."""
