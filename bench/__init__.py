"""Figures that the project holds itself to: `python -m bench.decode` and its neighbours."""
