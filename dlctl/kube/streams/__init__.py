"""Connections that stay open: WebSockets, exec sessions and forwarded ports."""
