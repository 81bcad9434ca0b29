"""Tests of dlctl on real clusters, through kubectl and a kubeconfig alone."""
