"""HTTP/2 as a splice needs it: bytes in, bytes and happenings out. Pure.

`Pair` is all that is kept of one client and its connection to the runtime. It passes whole frames and whole header
blocks, byte for byte and in their order. It looks only at the headers of requests, for the method; at DATA of the few
calls that are held; and at windows, so that the sums agree on both sides although a message has been replaced.

    requests    the header block of a request, decoded in order, for the compression table is one for the connection
    messages    a gRPC message in its frame and out of its compression, and the status of an answer of ours
    windows     the runtime's window for the connection, and what the client believes of it
    quota       how many bytes of held calls this process keeps, and whose turn it is
    calls       the held calls of a pair, and their states as a table
    outbox      what is to be written to either side, and what the splice is to be told
    paths       the walks over what the client sends and over what the runtime sends, and what they share
    pair        both paths
    stand_in    what speaks to clients while the runtime is away
"""
