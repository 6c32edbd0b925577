/* Daemons that take a request of one JSON line and send one line back. */
#pragma once

#include <stdbool.h>

struct peer {
    const char *name, *path;
    unsigned absent_ms; /* how long to retry while the peer is absent or disconnects before it answers */
    unsigned answer_ms;
};

struct answer {
    const char *why;     /* reason of a refusal */
    const char *runtime; /* "" if there is none */
};

/* Returns whether the answer is the expected one; else `why` has the reason, in the peer's words if it refused. */
bool peer_ask(const struct peer *peer, const char *line, const char *expected, struct answer *answer);

/* Sends a message that needs no answer, if the peer accepts it at once. */
void peer_tell(const char *path, const char *line);
