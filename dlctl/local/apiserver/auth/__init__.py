"""Authentication and authorization: tokens, RBAC, reviews and the serving certificate."""
