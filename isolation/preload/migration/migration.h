/* Movable memory: cuMemAlloc gives a program reserved addresses with pieces of physical card memory mapped behind them.
 * A piece can be unmapped, with its bytes kept on the host, and put back at the same addresses.
 *
 * This layer is beneath the hooks, in the driver's place: in a container whose memory moves, REAL(cuMemAlloc_v2) is the
 * one here. Elsewhere none of it is called, and the driver is called directly.
 *
 *   regions   the allocations, moved one piece at a time      mover   the thread that carries out the broker's orders
 *   calls     which calls pass the barrier, and which come here
 */
#pragma once

#include "../core/driver.h"
#include "../session/session.h"

#define PIECE_BYTES (64ull << 20)
/* Smaller allocations are left to the driver, which packs many into one block; they stay on the card. */
#define LEAST_BYTES (1ull << 20)

/* Of this process, on the one card of its container. */
struct amounts {
    uint64_t resident, moved; /* bytes of regions on the card, and on the host */
};

/* ---- regions.c: inside the barrier, or by the mover while it is shut --------------------------------------------- */

/* CUDA_ERROR_NOT_SUPPORTED: the driver cannot, or the size is too small for a region; the driver's own call is to be
 * made. */
HIDDEN CUresult region_make(CUdeviceptr *address, size_t bytes);
/* False: there is no such region. */
HIDDEN bool region_free(CUdeviceptr address, CUresult *result);

struct span {
    CUdeviceptr address;
    size_t bytes; /* the size requested */
    CUcontext context;
};
/* The region that contains that address. */
HIDDEN bool region_at(CUdeviceptr address, struct span *span);

HIDDEN struct amounts regions_amounts(void);

/* Waits until all work that may touch regions is done. An error: the driver cannot tell now, as while a stream
 * captures. */
HIDDEN CUresult regions_settle(void);

/* Take out pieces until `keep` bytes are left on the card, or put back pieces until `most` bytes are; at most one
 * stride per call. An error: the driver's; what was done until then stays done. */
HIDDEN CUresult regions_take_out(uint64_t keep);
HIDDEN CUresult regions_put_back(uint64_t most);

/* Everything that a context held before that moment (held_now) went with it. */
HIDDEN void regions_context_gone(CUcontext context, uint32_t since);

/* ---- calls.c ----------------------------------------------------------------------------------------------------- */

/* Whether this container's memory moves: the broker marks that with a file beside its socket, before the first call. */
HIDDEN bool moving_is_on(void);
/* The function that fills a slot in place of the driver's. */
HIDDEN void *moving_through(uint32_t place, const char *name, void *found);
/* The function that programs get for that place; NULL: the same as without this layer. */
HIDDEN void *moving_entry(uint32_t place);

/* ---- mover.c, as a part of the session --------------------------------------------------------------------------- */

HIDDEN bool mover_confirm(uint64_t deadline);
HIDDEN void mover_hint(const struct wire *hint);
HIDDEN void mover_exiting(void);
HIDDEN void mover_forget(void);
