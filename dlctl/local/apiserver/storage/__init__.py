"""Stored objects and their lifecycle: revisions, writes, deletion, garbage collection."""
