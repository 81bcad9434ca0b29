"""Documents about the API itself: groups, resources, OpenAPI."""
