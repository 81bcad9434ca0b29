"""Structural schemas and what they do to an object: coerce, validate, evaluate CEL rules."""
