"""JSON Patch, merge patch and strategic merge patch, as functions on JSON values."""
