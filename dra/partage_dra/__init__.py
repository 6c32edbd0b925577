"""The DRA driver: a node's cards as devices of Kubernetes, and claims on them as grants."""
