"""Custom resources: accepts CRDs and serves what they define."""
