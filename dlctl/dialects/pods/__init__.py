"""Pod templates in the specs of jobs: their schema and their readers."""
