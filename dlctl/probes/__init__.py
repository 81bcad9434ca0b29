"""The HTTP endpoints of the controller: metrics, liveness, readiness."""
