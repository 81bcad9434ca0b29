"""The job reconciler: plans what a job needs now (pure), and applies the plan (I/O)."""
