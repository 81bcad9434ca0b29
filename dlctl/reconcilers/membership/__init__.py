"""Jobs whose workers come and go while they run. Decisions are pure; one module does the I/O."""
