"""The command line: a module for each command, and subpackages for what commands share."""
