"""Registers our runtime with the engines of this machine, Docker and Podman, and takes that back."""
