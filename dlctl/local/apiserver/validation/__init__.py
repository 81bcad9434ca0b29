"""Validation of metadata, and of the kinds that this cluster acts on: pods, Jobs and roles.

The messages are those of the real server.
"""
