/* What this process holds of each card, and how much more it may take without asking.
 *
 *     lent     bytes that it may hold             changed in turn alone
 *     credit   of them not in use                 spent and given back by any thread, without a lock or a message
 *     used  =  lent - credit                      what the broker is told: always an absolute amount
 *
 * A call of the driver that takes memory is enclosed by account_begin, which reserves the most that it may take, and
 * account_end, which gives back what it did not. `used` is therefore never less than what the driver holds for us.
 */
#pragma once

#include "../session/session.h"

/* Reserves so many bytes for a call that is about to be made. CUDA_ERROR_OUT_OF_MEMORY: the limit does not allow it,
 * also after unused memory of pools went back. CUDA_ERROR_NOT_INITIALIZED: the broker is away. */
HIDDEN CUresult account_begin(unsigned card, uint64_t bytes);

/* So much more would be taken, or with 0: more is held than is lent. An error: it may not be, and what was done must be
 * undone. */
HIDDEN CUresult account_exceed(unsigned card, uint64_t more);

/* Ends what account_begin began: of what was reserved, so much is not held. */
HIDDEN void account_end(unsigned card, uint64_t unused);

/* Around a call that gives memory back: the second only after the driver has it. */
HIDDEN void account_begin_free(unsigned card);
HIDDEN void account_end_free(unsigned card, uint64_t bytes);
/* The same where the driver may still hold the bytes: they go back to the broker, which looks. */
HIDDEN void account_end_free_later(unsigned card, uint64_t bytes);

/* Of what is in use so much more or less is managed memory, which NVML shows as no process's. Said to the broker at
 * once; in flight, after what is taken was reserved and before the driver is asked for it, or before what the driver
 * has taken back is credit. */
HIDDEN void account_hide(unsigned card, uint64_t more, uint64_t less);

/* What the driver was found to hold or not to hold, whatever is lent. What is freed so is for this process's next calls
 * first: account_keep returns it. */
HIDDEN void account_correct(unsigned card, uint64_t more, uint64_t less);

/* Like account_correct with less, of what other processes may hold: `size` bytes of that piece in all so far. Where
 * others have it open, what becomes free is no credit of ours but charged to the container. */
HIDDEN void account_let_go(unsigned card, uint64_t number, uint64_t size, uint64_t less);

/* Asks what has nothing to do with amounts. False: the broker is away. */
HIDDEN bool account_ask(struct wire *packet);
/* The same in parts; entered is left. */
HIDDEN bool account_enter(void);
HIDDEN bool account_ask_in_turn(struct wire *packet);
HIDDEN void account_leave_turn(void);

/* How much may stay as credit beside what was granted as such: what one call of a pool reserves. 0: nothing more. */
HIDDEN void account_keep(unsigned card, uint64_t bytes);

/* In turn: lent but not used. */
HIDDEN uint64_t account_credit(unsigned card);
HIDDEN uint64_t account_used(unsigned card);

/* Tells the broker that more or less of the card is in use than before by calls that are not accounted: flags of
 * WIRE_AMOUNTS. */
HIDDEN void account_tell(unsigned card, uint32_t flags);
/* Asks for room for a context. */
HIDDEN CUresult account_context(unsigned card);
/* Code is about to be loaded, and nobody says how much: a block of room must be left by what the card then shows. */
HIDDEN CUresult account_code(unsigned card);

/* ---- as a part of the session ----------------------------------------------------------------------------------- */

HIDDEN bool accounts_confirm(uint64_t deadline);
/* WIRE_RECALL: the broker wants back what is lent and not in use. WIRE_REPORT: it wants to know how much is in use. */
HIDDEN void accounts_hint(const struct wire *hint);
HIDDEN void accounts_forget(void);

/* ---- reserves.c ------------------------------------------------------------------------------------------------- */

/* Gives back what pools and graphs keep unused. Whether any went. */
HIDDEN bool memory_shrink(unsigned card);
/* Reads again what pools and graphs hold. */
HIDDEN void memory_reread(unsigned card);
