/* What this folder is to the others: gates that graphs go through, and what it must hear of contexts, streams, the
 * session and the listening thread.
 */
#pragma once

#include "lanes.h"

/* ---- launches: launches.c --------------------------------------------------------------------------------------- */

/* A launch on its way: from before the driver is called until after it. */
struct passage {
    struct lane *lane; /* NULL: nobody counts it */
    CUgraphExec graph; /* what is launched, if that is a graph */
    bool is_written_down;
};

/* CUDA_SUCCESS, now or later: it may be launched. */
HIDDEN CUresult passage_begin_graph(struct passage *passage, CUgraphExec graph, CUstream stream, bool per_thread);
HIDDEN void passage_end(const struct passage *passage);
/* The executable is gone: what its launches cost is forgotten. */
HIDDEN void costs_forget(CUgraphExec graph);

/* ---- contexts, for their hooks ---------------------------------------------------------------------------------- */

/* There is a context on the card, and launches may come. */
HIDDEN void compute_reaches(unsigned card);
/* This thread has made a context, which is current now or not. */
HIDDEN void compute_context_made(unsigned card, CUcontext context);
/* Around the driver's call that may end a context: nothing of ours is done in it in between. */
HIDDEN void compute_context_ends(CUcontext context);
HIDDEN void compute_context_ended(CUcontext context, bool gone);

/* ---- the helper: drain.c ---------------------------------------------------------------------------------------- */

/* What it knew of epochs is old. */
HIDDEN void compute_watch_anew(void);
