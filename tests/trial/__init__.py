"""A cluster for a person to try partage in: `tools/rig up` and `tools/rig down`."""
