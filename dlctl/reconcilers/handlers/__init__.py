"""What a change in a store enqueues: which jobs, in which queue, and after how long."""
