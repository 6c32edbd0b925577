/* What all racing processes together may hold at most, at every moment: a page that they share.
 *
 * A process claims before it asks for memory and gives up its claim after it has freed it, so the claims are never less
 * than what is on the card. A refusal is right if, at some moment while it was asked for, the claims were above the
 * limit; otherwise there was room all the time.
 *
 * Killing a process between two of its stores leaves the sum too high and never too low: refusals are then excused
 * that should not be, until the runner of the race sets the sum right when nothing moves.
 */
#pragma once

#include "calls.h"

#include <stdatomic.h>

enum { CLAIM_SLOTS = 16, CLAIM_HISTORY = 1 << 16, CLAIM_MAILBOX = 8 };

/* A handle that one process offers to the others, who may have it open when it is freed. */
struct offer {
    _Atomic u64 bytes; /* 0: none */
    _Atomic u64 version; /* odd: it is being written */
    _Atomic u64 ipc[sizeof(CUipcMemHandle) / sizeof(u64)];
};

/* The layout is known to those who run the race, up to `mine`; and where offers are. */
struct claims {
    u64 limit;
    u64 removed;               /* claims of dead processes: only who runs the race writes it, as the next */
    _Atomic u64 excused;       /* bytes that the broker may have out of reach: of stopped processes */
    _Atomic u64 total;         /* of all, dead ones too */
    _Atomic u64 mine[CLAIM_SLOTS];
    _Atomic u64 changes;
    _Atomic u64 history[CLAIM_HISTORY];
    struct offer offers[CLAIM_MAILBOX];
};

struct asking {
    u64 since, highest, excused;
};

void claims_open(const char *path, unsigned slot);
struct offer *claims_offer(unsigned number);

void claim_more(u64 bytes);
void claim_less(u64 bytes);

/* What a refusal is judged by: from before the driver is asked (with the claim made) to after it answered. */
struct asking asking_begins(void);

/* How many bytes the claims stayed below the limit all the time; -1: they were above it, so the refusal was right. */
int64_t asking_room(const struct asking *asking);
