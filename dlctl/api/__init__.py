"""Values that every layer speaks in: keys, objects, jobs, conditions. No I/O here."""
