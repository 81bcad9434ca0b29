"""Launchers whose pod belongs to a batch/v1 Job: what it shows, needs, and looks like. Pure."""
