"""A pod on one machine: its types, and how flags and YAML become one. Pure."""
