"""A node whose pods are processes of this machine."""
