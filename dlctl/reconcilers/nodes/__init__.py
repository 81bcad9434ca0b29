"""The nodes of the cluster: what they announce, and what jobs charge them with."""
