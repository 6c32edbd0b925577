"""HTTP/2 of gRPC peers on a unix socket, without I/O: `frames` is the codec, `client` the client side."""
