/* Memory that a program takes of a card besides its allocations.
 *
 *   local memory     known before the kernel's first launch, and charged until its context is gone
 *   executables      estimated by their nodes, and charged until they are destroyed
 *   code             of unknown size: the broker is asked to measure the card
 *
 * Estimates are charged as used. NVML then shows the real amount, and the rest of what it shows is overhead, so an
 * estimate counts only until the card is measured.
 */
#pragma once

#include "memory.h"

/* Bytes of local memory per thread that a context begins with: the initial value of the stack limit. A guess. */
#define LOCALS_AT_FIRST 1024ull
#define GRAPH_NODE_BYTES (32ull << 10) /* a guess */

/* From now on kernels in the current context may use this much local memory per thread. CUDA_ERROR_OUT_OF_MEMORY: the
 * limit does not allow it. */
HIDDEN CUresult locals_take(uint64_t each);
HIDDEN void locals_forgotten(CUcontext context);

/* A function needs more local memory than contexts begin with, or (fewer bytes) does not: room is requested at its
 * first launch. While any function is awaited, every launch takes the slow path. `owner`: the module or library. */
HIDDEN void locals_await(CUfunction function, const void *owner, uint64_t each);
HIDDEN bool locals_awaited(void);
/* 0: the function is not awaited. */
HIDDEN uint64_t locals_of(CUfunction function);
HIDDEN void locals_came(CUfunction function);
/* A kernel's handle in a context: awaited if the kernel is. */
HIDDEN void locals_also(CUfunction function, CUfunction kernel);
HIDDEN void locals_owner_gone(const void *owner);

/* growth_comes: memory may be taken in unknown amounts, so the next view of the card must be a fresh one. growth_came:
 * whether that is so; resets it. */
HIDDEN void growth_comes(unsigned card);
HIDDEN bool growth_came(unsigned card);

HIDDEN void growth_forget(void);
