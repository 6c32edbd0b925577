/* This process's session with the broker: two sockets, opened when first needed and again whenever they break.
 *
 * `calls` carries requests, one at a time: the thread that holds the *turn* may send one. Everything that is waited for
 * has a deadline, including the turn. A broken connection is replaced by a new one under the same token and the request
 * is repeated, which is harmless since all amounts are absolute.
 *
 * A forked child has no session; it opens its own when it needs one.
 */
#pragma once

#include "../core/os.h"
#include "../core/wire.h"
#include "driver/cuda_abi.h"

/* How long one program call waits for the broker in total. */
#define SESSION_WAIT (5000ull * OS_MS)
/* Extra time for a thread whose deadline passed because the whole process was stopped (SIGSTOP): the broker may have
 * been available all the time. */
#define SESSION_GRACE (100ull * OS_MS)

enum { MOST_CARDS = 64, NO_CARD = WIRE_NO_CARD };

/* Additional flags for each HELLO of this process; set before the first connection. */
extern HIDDEN _Atomic uint32_t session_flags;

/* Whether there is a session, opened if necessary; waits at most SESSION_WAIT. */
HIDDEN bool session_start(void);

/* Waits for the turn until session_patience(deadline); every session_enter that succeeds needs a session_leave. */
HIDDEN bool session_enter(uint64_t deadline);
/* Takes the turn if it is free. */
HIDDEN bool session_try(void);
HIDDEN void session_leave(void);

/* Extends a deadline that is meant for an unavailable broker: while the broker responds, this thread merely queues
 * behind others. */
HIDDEN uint64_t session_patience(uint64_t deadline);

/* Holding the turn: fills in version and number, and stores the response in *packet. False: no valid response by
 * `deadline`. */
HIDDEN bool session_ask(struct wire *packet, uint64_t deadline);
/* Holding the turn: the same on the existing connection, for `confirm` of a part. */
HIDDEN bool session_ask_once(struct wire *packet, uint64_t deadline);
/* Sends a packet that has no response; for order-independent packets the turn is not needed. False: it was not sent. */
HIDDEN bool session_tell(struct wire *packet);

/* Sends a packet about time slices on `signals`, without the turn. False: it was not sent. */
HIDDEN bool session_say(struct wire *packet);

/* The number of the container's cards; 0 before the first connection. Needs no turn. */
HIDDEN unsigned session_cards(void);
/* The container's number of the card with this UUID, or NO_CARD. Needs no turn. */
HIDDEN unsigned session_card_of(const unsigned char uuid[16]);

/* Starts the thread that answers the broker's notifications until the process exits. Called after the driver's start:
 * exit handlers registered later run earlier, so this thread stops calling the driver before that shuts down.
 */
HIDDEN void session_listen(void);
/* Whether the thread is running. */
HIDDEN bool session_listens(void);

/* ---- parts: callbacks of the session ----------------------------------------------------------------------------- */

/* Callbacks by which the session informs a part of the library; NULL: not needed. The session names no part: the table
 * is built from cuda/parts.def. */
struct part {
    /* Holding the turn, on a new connection: reports what the part holds and learns the current state. False: the
     * connection broke. */
    bool (*confirm)(uint64_t deadline);
    /* In the child of a fork: drops everything of the parent's. Restrictions as for os_at_fork. */
    void (*forget)(void);
    /* A connection delivered the shared page; the part must not close the descriptor. */
    void (*page)(int descriptor);
    /* A notification from the broker about a card below MOST_CARDS. */
    void (*hint)(const struct wire *hint);
    /* The broker does not respond; called repeatedly while that lasts. */
    void (*away)(void);
    /* The last `away` came too late: the broker had just come back. */
    void (*back)(void);
    /* The listener has started. */
    void (*listening)(void);
    /* The process is exiting, and the listener has stopped. */
    void (*exiting)(void);
    /* Called repeatedly by the listener: does what is due, and returns when to be called again at the latest. */
    uint64_t (*tick)(void);
};
extern HIDDEN const struct part session_parts[];
extern HIDDEN const unsigned session_parts_count;

static inline const struct part *parts_end(void) { return session_parts + session_parts_count; }

/* ---- internal to this folder ------------------------------------------------------------------------------------ */

/* The current socket for the broker's notifications. */
HIDDEN struct os_socket session_signals(void);
HIDDEN bool session_has(const struct os_socket *signals);
/* Holding the turn: replaces the connection if its signals socket is this one, which has ended; one attempt. */
HIDDEN bool session_replace(const struct os_socket *ended, uint64_t deadline);
/* When the broker last responded to a request; 0: never. */
extern HIDDEN _Atomic uint64_t session_heard;
HIDDEN void turns_forget(void);
