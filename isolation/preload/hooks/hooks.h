/* How a hook of libcuda is written, and what hooks know of each other.
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

/* Whether what a stream is given is captured, by the driver's word; `per_thread`: what the default stream is. */
HIDDEN bool stream_captures(CUstream stream, bool per_thread);

/* ---- modules.c, for launches and graphs ------------------------------------------------------------------------- */

/* Before a function is launched the long way: whether there is room for the local memory that it needs. */
HIDDEN CUresult function_comes(CUfunction function, CUstream stream);
/* Bytes of local memory in each thread; 0: none, or the driver can't say. */
HIDDEN uint64_t function_locals(CUfunction function);
HIDDEN uint64_t kernel_locals(CUkernel kernel);

/* ---- launches.c, for graphs ------------------------------------------------------------------------------------- */

/* A launch on its way: from before the driver is called until after it. */
struct passage {
    struct lane *lane; /* NULL: it is not counted */
    struct caller *caller; /* whose launch goes the short way; NULL: it goes the long one */
    CUgraphExec graph;     /* what is launched, if that is a graph */
    bool is_captured;
};

/* CUDA_SUCCESS, now or later: it may be launched. */
HIDDEN CUresult passage_begin_graph(struct passage *passage, CUgraphExec graph, CUstream stream, bool per_thread);
HIDDEN void passage_end(const struct passage *passage);

/* ---- virtual.c, for contexts ------------------------------------------------------------------------------------ */

/* The last context on the card may be gone: looks what virtual memory is still there. */
HIDDEN void virtual_check(unsigned card);

/* ---- for the child of a fork ------------------------------------------------------------------------------------ */

HIDDEN void graphs_forget(void);
HIDDEN void virtual_forget(void);
