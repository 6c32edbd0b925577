"""API server clients for tests and the rig itself, with any identity."""
