"""Who may do what: tokens, RBAC, reviews and the serving certificate."""
