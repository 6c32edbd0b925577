/* A page shared by all racing processes: an upper bound of their memory at every moment.
 *
 * A process claims before it allocates memory and drops its claim after it has freed it, so the claims are never less
 * than the memory on the card. A refusal is right if the claims were above the limit at some moment during the request;
 * otherwise there was room all the time.
 *
 * Killing a process between two of its stores leaves the sum too high and never too low: wrong refusals are then
 * excused, until the runner of the race corrects the sum when nothing moves.
 */
#pragma once

#include "calls.h"

#include <stdatomic.h>

enum { CLAIM_SLOTS = 16, CLAIM_HISTORY = 1 << 16, CLAIM_MAILBOX = 8 };

/* A handle that one process offers to the others, which may have it open when it is freed. */
struct offer {
    _Atomic u64 bytes; /* 0: none */
    _Atomic u64 version; /* odd: it is being written */
    _Atomic u64 ipc[sizeof(CUipcMemHandle) / sizeof(u64)];
};

/* The runner of the race knows the layout up to `mine`, and the place of the offers. */
struct claims {
    u64 limit;
    u64 removed;               /* claims of dead processes: written only by the race's runner, as is the next field */
    _Atomic u64 excused;       /* bytes that may be out of the broker's reach: of stopped processes */
    _Atomic u64 total;         /* of all processes, including dead ones */
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

/* Begins the period by which a refusal is judged: from before the driver is called (with the claim made) to its
   return. */
struct asking asking_begins(void);

/* The smallest number of bytes by which the claims stayed below the limit; -1: they exceeded it, so the refusal was
   right. */
int64_t asking_room(const struct asking *asking);
