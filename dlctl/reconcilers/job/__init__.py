"""A job beside its plan: how it is found, decoded, cached, measured and written."""
