"""Registers our runtime with this machine's engines, Docker and Podman, and undoes that."""
