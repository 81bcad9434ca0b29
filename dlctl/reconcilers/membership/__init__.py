"""Elastic jobs: workers join and leave while they run. Decisions are pure values."""
