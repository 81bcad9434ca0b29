"""Large jobs have slots and threads, so that they hold up neither others nor the event loop."""
