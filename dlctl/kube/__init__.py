"""API server client: configuration, requests, errors. aiohttp is used nowhere else."""
