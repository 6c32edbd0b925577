/* What a program takes of a card beside its allocations.
 *
 *   local memory     known before the kernel's first launch, and charged until its context is gone
 *   executables      estimated by their nodes, and charged until they are destroyed
 *   code             nobody says how much: the broker is told that it is time to look at the card
 *
 * What was estimated is charged as used; NVML then shows what it really is, and the rest of what it shows is overhead.
 * So an estimate counts only until the card is looked at.
 */
#pragma once

#include "memory.h"

/* Bytes of local memory for each thread that a context begins with: the stack limit's own beginning. A guess. */
#define LOCALS_AT_FIRST 1024ull
#define GRAPH_NODE_BYTES (32ull << 10) /* a guess */

/* Kernels in the current context may use so much local memory in each thread from now on. CUDA_ERROR_OUT_OF_MEMORY: the
 * limit does not allow it. */
HIDDEN CUresult locals_take(uint64_t each);
HIDDEN void locals_forgotten(CUcontext context);

/* A function that was found needs more than contexts begin with, or (fewer) does not: it is asked about when it is
 * first launched. While one is awaited every launch goes the long way. `owner`: the module or library. */
HIDDEN void locals_await(CUfunction function, const void *owner, uint64_t each);
HIDDEN bool locals_awaited(void);
/* 0: it is not awaited. */
HIDDEN uint64_t locals_of(CUfunction function);
HIDDEN void locals_came(CUfunction function);
/* A kernel's handle in a context: it is awaited if the kernel is. */
HIDDEN void locals_also(CUfunction function, CUfunction kernel);
HIDDEN void locals_owner_gone(const void *owner);

/* More may be taken than is known: the next view of the card is to be a fresh one. The second says whether that is so,
 * once. */
HIDDEN void growth_comes(unsigned card);
HIDDEN bool growth_came(unsigned card);

HIDDEN void growth_forget(void);
