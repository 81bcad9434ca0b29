"""Validation of metadata and of pods, with the messages of the real server."""
