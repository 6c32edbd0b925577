"""The commands of a machine without Kubernetes: `up`, `down`, `ps` and `wait-for`."""
