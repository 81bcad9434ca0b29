"""Field management: which manager owns which fields, and server-side apply."""
