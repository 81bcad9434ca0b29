"""A real Kubernetes of plain processes for tests: no Docker, no images, ready in seconds."""
