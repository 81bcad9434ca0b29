"""What a change in a store wakes: which jobs, in which queue, and after how long."""
