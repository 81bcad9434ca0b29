"""What is read of objects in the cluster: pods, nodes, Jobs and others, without the rest."""
