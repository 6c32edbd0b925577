/* This process's session with the broker: two sockets, made at the first need and anew whenever they break.
 *
 * `calls` carries questions, one at a time: whoever has the *turn* may ask. Everything that is waited for has a
 * deadline, the turn included. A broken connection is replaced by a new one under the same token, and the question is
 * asked again: all amounts are absolute, so that does no harm.
 *
 * A forked child has no session (session_forget); it makes its own when it needs one.
 */
#pragma once

#include "../core/abi.h"
#include "../core/os.h"
#include "../core/wire.h"

#include <errno.h>

/* Leaves errno as it was to the end of the block: what a program sees of it is not ours to change. */
#define KEEP_ERRNO __attribute__((cleanup(errno_restore), unused)) const int errno_kept = errno
static inline void errno_restore(const int *kept) { errno = *kept; }

/* How long one call of a program waits for the broker, in all. */
#define SESSION_WAIT (5000ull * OS_MS)
/* For who finds its time over because the whole process stood still, as one that was stopped does: the broker may be
 * there all the while. */
#define SESSION_GRACE (100ull * OS_MS)

enum { MOST_CARDS = 64, NO_CARD = WIRE_NO_CARD };

/* Whether there is a session, made now if need be; waits at most SESSION_WAIT. */
HIDDEN bool session_start(void);

/* Waits for the turn until session_patience(deadline); every entered turn is left. */
HIDDEN bool session_enter(uint64_t deadline);
HIDDEN void session_leave(void);

/* A deadline that holds for a broker that is away: while it answers, others are only before us. */
HIDDEN uint64_t session_patience(uint64_t deadline);

/* In turn: fills in version and number, and leaves the answer in *packet. False: no valid answer came by `deadline`. */
HIDDEN bool session_ask(struct wire *packet, uint64_t deadline);
/* In turn: the same over the connection that there is, for accounts_confirm. */
HIDDEN bool session_ask_once(struct wire *packet, uint64_t deadline);
/* Says what is not answered. In turn or, for what may come in any order, out of it. False: it did not go out. */
HIDDEN bool session_tell(struct wire *packet);

/* Says something about leases, on signals. Out of turn. False: it did not go out. */
HIDDEN bool session_say(struct wire *packet);

/* How many cards the container has; 0 before the first connection. Needs no turn. */
HIDDEN unsigned session_cards(void);
/* The container's number of the card with this UUID, or NO_CARD. Needs no turn. */
HIDDEN unsigned session_card_of(const unsigned char uuid[16]);

/* From now on a thread of ours answers the broker's hints, in this process. */
HIDDEN void session_listen(void);
/* Whether there is such a thread. */
HIDDEN bool session_listens(void);

/* ---- for the files of this folder ------------------------------------------------------------------------------- */

/* The socket of the broker's hints as it is now. */
HIDDEN struct os_socket session_signals(void);
HIDDEN bool session_has(const struct os_socket *signals);
/* In turn: replaces the connection if its signals are these, which have ended; one attempt. */
HIDDEN bool session_replace(const struct os_socket *ended, uint64_t deadline);
/* The listening thread of the parent isn't there. */
HIDDEN void listening_forget(void);
HIDDEN void cards_forget(void);
/* In turn: asks which cards there are. */
HIDDEN bool cards_learn(unsigned count, uint64_t deadline);
HIDDEN void turns_forget(void);

/* ---- of memory/, which the session tells of its life ------------------------------------------------------------ */

/* In turn, over a new connection: tells what is held and learns what is lent. False: the connection broke again. */
HIDDEN bool accounts_confirm(uint64_t deadline);
/* The child of a fork holds nothing. */
HIDDEN void memory_forget(void);
/* The broker wants back what is lent and not in use. */
HIDDEN void accounts_recalled(unsigned card);
/* The broker wants to know how much is in use. */
HIDDEN void accounts_report(unsigned card, uint32_t number);
/* Comes now and then; whether it should come again soon. */
HIDDEN bool memory_tick(void);

/* ---- of compute/, the same -------------------------------------------------------------------------------------- */

/* The page of lines, which stays its owner's. */
HIDDEN bool compute_page(int descriptor);
/* In turn, over a new connection: joins again where this process had joined. False: the connection broke again. */
HIDDEN bool compute_confirm(uint64_t deadline);
/* The broker does not answer; said as long as that is so. */
HIDDEN void compute_away(void);
/* What was said last was said too late: it had just come back. */
HIDDEN void compute_back(void);
/* The listening thread has begun. */
HIDDEN void compute_listening(void);
/* Looks after leases; when it should come again. */
HIDDEN uint64_t compute_tick(void);
/* The child of a fork has launched nothing. */
HIDDEN void compute_forget(void);
