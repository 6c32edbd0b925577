"""Kubelet's gRPC calls to a DRA driver: registration, prepare and unprepare, and device health."""
