"""The DRA driver: publishes a node's cards as Kubernetes devices, and turns claims on them into grants."""
