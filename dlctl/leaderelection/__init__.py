"""Leader election: which of several controllers works, and fencing of the others."""
