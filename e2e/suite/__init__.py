"""Tests of dlctl on a real cluster, through kubectl; run with ``make e2e``."""
