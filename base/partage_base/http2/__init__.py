"""HTTP/2 as gRPC peers on a unix socket speak it, without I/O: `frames` is the codec, `client` a client's half."""
