"""The HTTP side of the controller: metrics, liveness, readiness."""
