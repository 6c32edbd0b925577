/* This process's session with the broker: two sockets, made at the first need and again whenever they break.
 *
 * `calls` carries questions, one at a time: the thread that has the *turn* may ask. Everything that is waited for has a
 * deadline, the turn included. A broken connection is replaced by a new one under the same token, and the question is
 * asked again: all amounts are absolute, so that does no harm.
 *
 * A forked child has no session; it makes its own when it needs one.
 */
#pragma once

#include "../core/os.h"
#include "../core/wire.h"
#include "driver/cuda_abi.h"

/* How long one call of a program waits for the broker, in all. */
#define SESSION_WAIT (5000ull * OS_MS)
/* More time for a thread whose deadline has passed because the whole process stood still (SIGSTOP): the broker may have
 * been there all the while. */
#define SESSION_GRACE (100ull * OS_MS)

enum { MOST_CARDS = 64, NO_CARD = WIRE_NO_CARD };

/* What is said of this process in each HELLO beside what the session itself says; set before the first connection. */
extern HIDDEN _Atomic uint32_t session_flags;

/* Whether there is a session, made now if need be; waits at most SESSION_WAIT. */
HIDDEN bool session_start(void);

/* Waits for the turn until session_patience(deadline); every entered turn is left. */
HIDDEN bool session_enter(uint64_t deadline);
/* Enters it if it is free. */
HIDDEN bool session_try(void);
HIDDEN void session_leave(void);

/* A deadline that holds for a broker that is away: while it answers, other threads are only before this one. */
HIDDEN uint64_t session_patience(uint64_t deadline);

/* In turn: fills in version and number, and leaves the answer in *packet. False: no valid answer came by `deadline`. */
HIDDEN bool session_ask(struct wire *packet, uint64_t deadline);
/* In turn: the same over the connection that there is, for `confirm` of a part. */
HIDDEN bool session_ask_once(struct wire *packet, uint64_t deadline);
/* Says what is not answered. In turn or, for what may come in any order, out of it. False: it did not go out. */
HIDDEN bool session_tell(struct wire *packet);

/* Says something about leases, on signals. Out of turn. False: it did not go out. */
HIDDEN bool session_say(struct wire *packet);

/* How many cards the container has; 0 before the first connection. Needs no turn. */
HIDDEN unsigned session_cards(void);
/* The container's number of the card with this UUID, or NO_CARD. Needs no turn. */
HIDDEN unsigned session_card_of(const unsigned char uuid[16]);

/* From now on a thread of ours answers the broker's hints, in this process, until that exits. After the driver's start:
 * what is asked for later runs earlier when the process exits, and so this thread no longer calls a driver that ends.
 */
HIDDEN void session_listen(void);
/* Whether there is such a thread. */
HIDDEN bool session_listens(void);

/* ---- parts: what above hears of the session's life --------------------------------------------------------------- */

/* A part of the library that the session tells of its life; NULL: it need not know. The session names none: the table
 * is made of cuda/parts.def. */
struct part {
    /* In turn, over a new connection: says what it holds and learns what is so now. False: the connection broke. */
    bool (*confirm)(uint64_t deadline);
    /* In the child of a fork, which has nothing of its parent's. As os_at_fork says. */
    void (*forget)(void);
    /* The page of lines came with a connection; the descriptor is not the part's to close. */
    void (*page)(int descriptor);
    /* A hint of the broker, about a card below MOST_CARDS. */
    void (*hint)(const struct wire *hint);
    /* The broker does not answer; called as long as that is so. */
    void (*away)(void);
    /* `away` was called too late the last time: the broker had just come back. */
    void (*back)(void);
    /* The listener has begun. */
    void (*listening)(void);
    /* The process exits, and the listener is no more. */
    void (*exiting)(void);
    /* By the listener, again and again: does what is due, and says when to come again at the latest. */
    uint64_t (*tick)(void);
};
extern HIDDEN const struct part session_parts[];
extern HIDDEN const unsigned session_parts_count;

static inline const struct part *parts_end(void) { return session_parts + session_parts_count; }

/* ---- for the files of this folder ------------------------------------------------------------------------------- */

/* The socket of the broker's hints as it is now. */
HIDDEN struct os_socket session_signals(void);
HIDDEN bool session_has(const struct os_socket *signals);
/* In turn: replaces the connection if its signals are these, which have ended; one attempt. */
HIDDEN bool session_replace(const struct os_socket *ended, uint64_t deadline);
/* The parent's listener is not in a forked child. */
HIDDEN void listener_forget(void);
HIDDEN void turns_forget(void);
