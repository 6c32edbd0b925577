/* Memory that moves: what a program gets by cuMemAlloc is addresses of its own with pieces of the card behind them. A
 * piece can be taken out, its bytes being kept on the host, and put back at the same addresses.
 *
 * This is beneath the hooks, in the driver's place: REAL(cuMemAlloc_v2) of a container whose memory moves is the one
 * here. Where nothing moves none of it is called, and the driver is called as ever.
 *
 *   regions   what there is, and one piece at a time      mover   the thread that does what the broker says
 *   calls     which calls go by the door, and to us
 */
#pragma once

#include "../core/driver.h"
#include "../session/session.h"

#define PIECE_BYTES (64ull << 20)
/* What is smaller is left to the driver, which has many such in one of its blocks, and stays on the card. */
#define LEAST_BYTES (1ull << 20)

/* Of this process, on the one card of its container. */
struct amounts {
    uint64_t resident, moved; /* bytes of regions: on the card, and on the host */
};

/* ---- regions.c: in presence, or by the mover while the door is shut ---------------------------------------------- */

/* CUDA_ERROR_NOT_SUPPORTED: this driver can't, or it is too small to be one; the driver's own call is to be made. */
HIDDEN CUresult region_make(CUdeviceptr *address, size_t bytes);
/* False: there is no such region. */
HIDDEN bool region_free(CUdeviceptr address, CUresult *result);

struct span {
    CUdeviceptr address;
    size_t bytes; /* as they were asked for */
    CUcontext context;
};
/* The region that has that address. */
HIDDEN bool region_at(CUdeviceptr address, struct span *span);

HIDDEN struct amounts regions_amounts(void);

/* All work that may touch them is done. An error: the driver can't tell now, as while a stream captures. */
HIDDEN CUresult regions_settle(void);

/* Takes out as much as leaves `keep` bytes on the card, or puts back as much as makes `most` of them; of that no more
 * than a stride at once. An error: the driver's, for as long as it did not work; what is done is done. */
HIDDEN CUresult regions_take_out(uint64_t keep);
HIDDEN CUresult regions_put_back(uint64_t most);

/* All that a context had before that moment (held_now) went with it. */
HIDDEN void regions_context_gone(CUcontext context, uint32_t since);

/* ---- calls.c ----------------------------------------------------------------------------------------------------- */

/* Whether this container's memory moves: the broker says so by a file beside its socket, before the first call. */
HIDDEN bool moving_is_on(void);
/* What a slot is filled with in place of that function of the driver's. */
HIDDEN void *moving_through(uint32_t place, const char *name, void *found);
/* What programs are given for a function of that place; NULL: nothing else than without us. */
HIDDEN void *moving_entry(uint32_t place);

/* ---- mover.c, as a part of the session --------------------------------------------------------------------------- */

HIDDEN bool mover_confirm(uint64_t deadline);
HIDDEN void mover_hint(const struct wire *hint);
HIDDEN void mover_exiting(void);
HIDDEN void mover_forget(void);
