/* Daemons that are asked by one JSON line and answer by one. */
#pragma once

#include <stdbool.h>

struct peer {
    const char *name, *path;
    unsigned absent_ms; /* so long it may be away; one that ends before it answered is asked again */
    unsigned answer_ms;
};

struct answer {
    const char *why;     /* of a refusal */
    const char *runtime; /* "" where there is none */
};

/* Whether the answer is the expected one; `why` says why not, in the peer's words if it says no. */
bool peer_ask(const struct peer *peer, const char *line, const char *expected, struct answer *answer);

/* Sends what needs no answer, if the peer takes it at once. */
void peer_tell(const char *path, const char *line);
