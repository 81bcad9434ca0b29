"""Pods avoid nodes at fault, unless they fit on no other."""
