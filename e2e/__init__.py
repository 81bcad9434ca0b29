"""Tests of dlctl on real clusters: they know kubectl and a kubeconfig, and nothing of dlctl."""
