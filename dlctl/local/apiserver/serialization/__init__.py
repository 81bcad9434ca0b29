"""Objects on the wire: the built-in types, typed JSON and protobuf."""
