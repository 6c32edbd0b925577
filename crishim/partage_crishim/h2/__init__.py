"""HTTP/2 as a splice needs it: bytes in, bytes and happenings out. Pure.

`Pair` is all that is kept of one client and its connection to the runtime. It passes whole frames and whole header
blocks, byte for byte and in their order, and looks only at what it must: the headers of requests, for the method; DATA
of the few calls that are held; windows, so that the sums agree on both sides although a message has been replaced.

    frames      what a frame is, and how one of ours is made
    requests    the header block of a request, decoded in order, for the compression table is one for the connection
    answers     what we say ourselves, in literals that touch no table
    messages    a gRPC message in its frame, and out of its compression
    windows     the runtime's window for the connection, and what the client believes of it
    quota      how many bytes of held calls this process keeps, and whose turn it is
    held        one held call: its states, as a table
    calls       all held calls of a pair
    upward      the walk over what the client sends
    downward    the walk over what the runtime sends
    pair        both, and what they share in `state`
    standing_in what speaks to clients while the runtime is away
"""
