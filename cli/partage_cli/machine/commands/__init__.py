"""What people type on one machine: `run`, `ps`, `logs` and the like, each a question to the manager."""
