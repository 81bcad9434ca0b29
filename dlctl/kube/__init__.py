"""Talking to an API server: configuration, requests, errors. aiohttp stays in here."""
