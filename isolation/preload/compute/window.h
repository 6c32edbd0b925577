/* Batches of a lane, for window.c; all under the lane's lock. */
#pragma once

#include "lanes.h"

/* The measured cost of one kind of launch, and how many launches showed it. */
struct rate {
    uint64_t cost; /* ns per launch; 0: unknown */
    uint32_t proved;
    uint32_t met; /* changes when the graph changes; 0: never launched */
};

HIDDEN struct rate batch_rate(const struct lane *lane, CUgraphExec graph);

static inline struct batch *batch_nth(struct lane *lane, unsigned n) {
    return &lane->batches[(lane->first + n) % BATCHES];
}

/* The batch that is open, or will be opened next. */
static inline struct batch *batch_next(struct lane *lane) { return batch_nth(lane, lane->count); }

/* Opens a batch that may take `budget` ns. Its time begins at the end of the last batch, or here. */
HIDDEN void batch_open(struct lane *lane, uint64_t now, uint64_t budget);

/* Permits that many launches of that kind in the open batch; the permission for another graph ends. */
HIDDEN void batch_grant(struct lane *lane, CUgraphExec graph, uint32_t launches);

/* The record of the graph in the open batch; NULL: there is no room for another kind. */
HIDDEN struct kind *batch_kind(struct lane *lane, CUgraphExec graph);

/* The expected time of the open batch. */
HIDDEN uint64_t batch_expected(struct lane *lane);

/* Ends the open batch with an event, if it has launches. */
HIDDEN void batch_close(struct lane *lane);

/* Learns from completed batches and removes them. */
HIDDEN void batch_reap(struct lane *lane, uint64_t now);

/* Launches that bypassed the hooks are in no batch, so an event after them measures none: if there were any, all
 * batches are dropped. */
HIDDEN void batch_forget_unseen(struct lane *lane);
