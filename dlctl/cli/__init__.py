"""The command line: a module for each command, and rooms for what they share."""
