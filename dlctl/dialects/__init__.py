"""How one API group spells a job: wire form, status, names and labels, schema."""
