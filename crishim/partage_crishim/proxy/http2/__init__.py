"""HTTP/2 as the proxy needs it: bytes in, bytes and events out. Pure.

`ConnectionPair` holds all state of one client and its connection to the runtime. It forwards whole frames and whole
header blocks, byte for byte and in order. It inspects only the headers of requests, for the method; DATA of the few
intercepted calls; and flow-control windows, so that both sides' sums agree although a message was replaced.

    requests          a request's header block; all are decoded in order, since the connection has one compression table
    messages          a gRPC message in its frame and decompressed, and the status of a response of ours
    windows           the runtime's window for the connection, and the client's view of it
    quota             how many bytes of intercepted calls this process buffers, and which call is next
    calls             the intercepted calls of a connection, with their state table
    outbox            bytes to write to either side, and events for the proxy
    paths             the request path and the response path, and their shared state
    connection_pair   both paths together
    unavailable       the responder that answers clients while the runtime is unavailable
"""
