"""The verbs on resources and subresources, from get and watch to exec."""
