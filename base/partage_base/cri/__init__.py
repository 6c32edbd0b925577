"""Will hold our own minimal protobuf schema of the container runtime interface and a small client without grpcio."""
