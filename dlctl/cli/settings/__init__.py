"""Settings of the controller, and the flags of the operators that it replaces."""
