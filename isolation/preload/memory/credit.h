/* Credit, the unused part of what is lent; for account.c and requests.c only.
 *
 * Credit beyond what was granted as such is returned; after a recall by the broker all of it is, immediately. Returning
 * requires the turn. While the thread that holds the turn waits for a response, others return in its place: the
 * response may depend on memory that another process has unused, which could otherwise close a circle of waiting
 * processes.
 */
#pragma once

#include "account.h"

#include <stdatomic.h>

struct account {
    _Atomic uint64_t lent;
    _Atomic int64_t credit; /* negative: more is held than is lent */
    _Atomic uint64_t kept, granted; /* what may stay as credit */
    _Atomic uint64_t hidden; /* part of what is used: NVML attributes it to no process */
    _Atomic uint32_t changes, in_flight;
    _Atomic uint32_t taking; /* calls of in_flight that have reserved */
    _Atomic uint32_t returns, recalled; /* how many returns were made; the number of the last recall */
    _Atomic bool is_dry; /* no credit was granted since a recall: everything unused is returned at once */
};

extern HIDDEN struct account accounts[MOST_CARDS];

HIDDEN uint64_t credit_used(struct account *account);
HIDDEN void credit_change(struct account *account, int64_t by);
/* Spends credit for a call that is in flight from then on; false if there is too little. */
HIDDEN bool credit_spend(struct account *account, uint64_t bytes);

/* A packet with a consistent snapshot of the amounts. */
HIDDEN struct wire credit_told(enum wire_what what, unsigned card);

/* The caller holds the turn. credit_take gives up all lent credit but `keep`, which must then be reported; false: there
 * is no more than that.
 */
HIDDEN void credit_now_lent(struct account *account, uint64_t lent);
HIDDEN bool credit_take(struct account *account, uint64_t keep);
HIDDEN void credit_say_returned(unsigned card, uint32_t number);
/* Releases the turn and returns what is owed. */
HIDDEN void credit_leave(void);

/* Enclose a request that may wait; the caller holds the turn. credit_wait_ends: whether something was returned
 * meanwhile; then the response may predate that, and its lent amount is stale. */
HIDDEN void credit_wait_begins(void);
HIDDEN bool credit_wait_ends(void);
/* Enclose other requests made during the wait. credit_wait_pauses: whether the wait is to be resumed. */
HIDDEN bool credit_wait_pauses(void);
HIDDEN void credit_wait_goes_on(void);

/* Without the turn. The first returns what exceeds the allowed credit; the second all of it, after a recall. */
HIDDEN void credit_pay_back_excess(unsigned card);
HIDDEN void credit_pay_back(unsigned card);

HIDDEN void credit_forget(void);
