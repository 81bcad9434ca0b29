"""The objects that a job owns: pods, services and dependents, rendered, grouped and created."""
