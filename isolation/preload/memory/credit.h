/* For account.c alone: credit, which is what is lent and not in use.
 *
 * It goes back beyond what was granted as such, and all of it where the broker recalls it, from then on at once.
 * Returns are in turn. While who has the turn waits for an answer others give back in its stead, for that answer may be
 * waiting for what another process has unused, and so on in a circle.
 */
#pragma once

#include "account.h"

#include <stdatomic.h>

struct account {
    _Atomic uint64_t lent;
    _Atomic int64_t credit; /* less than 0: more is held than is lent */
    _Atomic uint64_t kept, granted; /* what may stay as credit */
    _Atomic uint64_t hidden; /* of what is in use: NVML shows it as no process's */
    _Atomic uint32_t changes, in_flight;
    _Atomic uint32_t taking; /* of in_flight: those that have reserved */
    _Atomic uint32_t returns, recalled; /* how often something went back; the number of the last recall */
    _Atomic bool is_dry; /* since a recall no credit was granted: all that is not used goes back at once */
};

extern HIDDEN struct account accounts[MOST_CARDS];

HIDDEN uint64_t credit_used(struct account *account);
HIDDEN void credit_change(struct account *account, int64_t by);
/* For a call that is in flight from then on; false: there is not so much. */
HIDDEN bool credit_spend(struct account *account, uint64_t bytes);

/* A packet with the amounts as they are at one moment. */
HIDDEN struct wire credit_told(enum wire_what what, unsigned card);

/* In turn. credit_take: all but so much is lent no more, which then is to be said; false: there is no more than that.
 */
HIDDEN void credit_now_lent(struct account *account, uint64_t lent);
HIDDEN bool credit_take(struct account *account, uint64_t keep);
HIDDEN void credit_say_returned(unsigned card, uint32_t number);
/* Leaves the turn, and gives back what is owed. */
HIDDEN void credit_leave(void);

/* Around a question that may wait, in turn. credit_wait_ends: whether something went back meanwhile: then the answer
 * may be from before that, and what it says is lent is no more. */
HIDDEN void credit_wait_begins(void);
HIDDEN bool credit_wait_ends(void);
/* Around other questions in the middle of it. credit_wait_pauses: whether it is to go on. */
HIDDEN bool credit_wait_pauses(void);
HIDDEN void credit_wait_goes_on(void);

/* Out of turn: what is more than may stay; all of it, as a recall says. */
HIDDEN void credit_pay_back_excess(unsigned card);
HIDDEN void credit_pay_back(unsigned card);

HIDDEN void credit_forget(void);
