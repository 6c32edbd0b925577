/* Batches of a lane, for window.c; all under the lane's lock. */
#pragma once

#include "lanes.h"

/* What launches of one kind were found to take, and how many of them showed it. */
struct rate {
    uint64_t cost; /* ns of one; 0: not known */
    uint32_t proved;
    uint32_t met; /* another number once the graph is another one; 0: never launched */
};

HIDDEN struct rate batch_rate(const struct lane *lane, CUgraphExec graph);

static inline struct batch *batch_nth(struct lane *lane, unsigned n) {
    return &lane->batches[(lane->first + n) % BATCHES];
}

/* The one that is open, or will be. */
static inline struct batch *batch_next(struct lane *lane) { return batch_nth(lane, lane->count); }

/* Begins one that may come to so many ns. Its time begins where the last one's ends, or here. */
HIDDEN void batch_open(struct lane *lane, uint64_t now, uint64_t budget);

/* So many launches of that kind may go into the open batch; of another graph none may any more. */
HIDDEN void batch_grant(struct lane *lane, CUgraphExec graph, uint32_t launches);

/* What the open one was given of the graph; NULL: it has no place for another kind. */
HIDDEN struct kind *batch_kind(struct lane *lane, CUgraphExec graph);

/* How long what the open one was given is expected to take. */
HIDDEN uint64_t batch_expected(struct lane *lane);

/* An event ends the open one, if it was given anything. */
HIDDEN void batch_close(struct lane *lane);

/* Learns from those that are done, and takes them away. */
HIDDEN void batch_reap(struct lane *lane, uint64_t now);

/* What went through unseen is in no batch, and an event after it is none of a batch's: if anything did, all go. */
HIDDEN void batch_forget_unseen(struct lane *lane);
