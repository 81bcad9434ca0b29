"""Manifests: loaded, checked, explained, rendered and submitted."""
