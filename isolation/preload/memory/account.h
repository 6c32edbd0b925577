/* What this process holds of each card, and how much more it may take without asking the broker.
 *
 *     lent     bytes that it may hold             changed only while holding the turn
 *     credit   the unused part of them            spent and given back by any thread, without a lock or a message
 *     used  =  lent - credit                      reported to the broker: always an absolute amount
 *
 * A driver call that takes memory is enclosed by account_begin, which reserves the most that it may take, and
 * account_end, which gives back the rest. `used` is therefore never less than what the driver holds for us.
 */
#pragma once

#include "../session/session.h"

/* Ends what account_begin began; `unused` bytes of the reservation are not held. */
HIDDEN void account_end(unsigned card, uint64_t unused);

/* Enclose a call that frees memory: the second is called only once the driver has taken it back. */
HIDDEN void account_begin_free(unsigned card);
HIDDEN void account_end_free(unsigned card, uint64_t bytes);
/* The same if the driver may still hold the bytes: they are returned to the broker, which measures the card. */
HIDDEN void account_end_free_later(unsigned card, uint64_t bytes);

/* Of the used amount, this much more or less is managed memory, which NVML attributes to no process. Reported to the
 * broker at once. Called with a call in flight: after the reservation and before the driver is asked for the memory, or
 * before memory that the driver has taken back becomes credit. */
HIDDEN void account_hide(unsigned card, uint64_t more, uint64_t less);

/* Corrects `used` by what the driver was found to hold or not to hold, regardless of `lent`. Memory freed this way is
 * kept for this process's next calls until account_keep returns it. */
HIDDEN void account_correct(unsigned card, uint64_t more, uint64_t less);

/* As account_correct with `less`, for memory that other processes may hold: `size` bytes of that piece in total so far.
 * If others have it open, the freed bytes do not become our credit but are charged to the container. */
HIDDEN void account_let_go(unsigned card, uint64_t number, uint64_t size, uint64_t less);

/* Sends a request that concerns no amounts. False: the broker is unavailable. */
HIDDEN bool account_ask(struct wire *packet);
/* The same in steps; every successful account_enter needs an account_leave_turn. */
HIDDEN bool account_enter(void);
HIDDEN bool account_ask_in_turn(struct wire *packet);
HIDDEN void account_leave_turn(void);

/* How much may stay as credit besides what was granted as such: what one call of a pool reserves. 0: nothing more. */
HIDDEN void account_keep(unsigned card, uint64_t bytes);

/* The caller holds the turn. Bytes lent but not used, and bytes used. */
HIDDEN uint64_t account_credit(unsigned card);
HIDDEN uint64_t account_used(unsigned card);

/* Tells the broker that calls that are not accounted use more or less of the card than before: flags of
 * WIRE_AMOUNTS. */
HIDDEN void account_tell(unsigned card, uint32_t flags);

HIDDEN void accounts_forget(void); /* as a part of the session */

/* ---- requests.c ------------------------------------------------------------------------------------------------- */

/* Reserves bytes for a call that is about to be made. CUDA_ERROR_OUT_OF_MEMORY: the limit does not allow it, even after
 * unused memory of pools was returned. CUDA_ERROR_NOT_INITIALIZED: the broker is unavailable. */
HIDDEN CUresult account_begin(unsigned card, uint64_t bytes);
/* A call has taken more than was reserved, which is charged. An error: it is not allowed, and what was done must be
 * undone. */
HIDDEN CUresult account_exceed(unsigned card);
/* Requests room for a context. */
HIDDEN CUresult account_context(unsigned card);
/* Code of unknown size is about to be loaded: requires that one block be free by what the card shows after a fresh
 * look. */
HIDDEN CUresult account_code(unsigned card);

/* As a part of the session. WIRE_RECALL: return what is lent and unused. WIRE_REPORT: report how much is used. */
HIDDEN bool accounts_confirm(uint64_t deadline);
HIDDEN void accounts_hint(const struct wire *hint);
