"""Large jobs hold up no others: their reconciles have slots, and what takes long has threads."""
