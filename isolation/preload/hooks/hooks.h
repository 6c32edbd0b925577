/* How a hook of libcuda is written, and the functions that hooks share.
 *
 *     HOOK_CALL(cuMemAlloc_v2, CUdeviceptr *address, size_t bytes) {
 *         ...
 *         return DRIVER(REAL(cuMemAlloc_v2)(address, bytes));
 *     }
 */
#pragma once

#include "../compute/lanes.h"
#include "../memory/memory.h"

enum hook {
#define HOOK(name) HOOK_##name,
#include "hooks.def"
    HOOKS
};

#define HOOK_CALL(name, ...) DEFINE_HOOK(CUresult, name, __VA_ARGS__)

/* Whether the driver captures work given to the stream; `per_thread`: which default stream NULL means. */
HIDDEN bool stream_captures(CUstream stream, bool per_thread);

/* ---- modules.c, for launches and graphs ------------------------------------------------------------------------- */

/* Before a slow-path launch of a function: checks that there is room for its local memory. */
HIDDEN CUresult function_comes(CUfunction function, CUstream stream);
/* Bytes of local memory per thread; 0: none, or the driver cannot tell. */
HIDDEN uint64_t function_locals(CUfunction function);
HIDDEN uint64_t kernel_locals(CUkernel kernel);

/* ---- launches.c, for graphs ------------------------------------------------------------------------------------- */

/* A launch in progress, from before the driver is called until it returns. */
struct passage {
    struct lane *lane; /* NULL: not counted */
    struct caller *caller; /* set for a fast-path launch; NULL: slow path */
    CUgraphExec graph;     /* the graph launched, if any */
    bool is_captured;
};

/* Waits if necessary. CUDA_SUCCESS: the launch may be made. */
HIDDEN CUresult passage_begin_graph(struct passage *passage, CUgraphExec graph, CUstream stream, bool per_thread);
HIDDEN void passage_end(const struct passage *passage);

/* ---- virtual.c, for contexts ------------------------------------------------------------------------------------ */

/* Called when the last context on the card may be gone: checks which virtual memory still exists. */
HIDDEN void virtual_check(unsigned card);

/* ---- for forked children ---------------------------------------------------------------------------------------- */

HIDDEN void graphs_forget(void);
HIDDEN void virtual_forget(void);
