"""Connections that continue in another protocol than HTTP: WebSockets and SPDY."""
