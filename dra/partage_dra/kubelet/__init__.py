"""What kubelet asks of a DRA driver: registration, prepare and unprepare, and the health of devices, over gRPC."""
