/* Memory of a card that pools and graphs keep: the size reported by the driver, reread whenever it may have changed.
 *
 * A call that may make a reserve grow comes after account_begin, and is enclosed by reserve_begin and reserve_end,
 * which also does what account_end does. Concurrent calls share their reservations: growth is taken from the
 * reservation of the call that sees it first.
 */
#pragma once

#include "memory.h"

struct reserve;

/* The reserve of a known pool. NULL: unknown, or on the host. */
HIDDEN struct reserve *reserve_of_pool(CUmemoryPool pool);
/* The same for a pool that the driver gives out for a location and an allocation type; it is known from now on. NULL:
 * on the host, on a card that was not granted, of a size that the driver does not report, or too many pools. */
HIDDEN struct reserve *reserve_met_pool(CUmemoryPool pool, const CUmemLocation *location, unsigned type);
/* Whether a known pool is on the host and takes nothing of any card. */
HIDDEN bool reserve_pool_on_host(CUmemoryPool pool);
/* The driver has destroyed it. */
HIDDEN void reserve_pool_gone(CUmemoryPool pool);
/* The reserve of all graphs on a card. */
HIDDEN struct reserve *reserve_of_graphs(unsigned card);

HIDDEN unsigned reserve_card(const struct reserve *reserve);
/* The program has destroyed the pool, but some of its memory is still in use. */
HIDDEN bool reserve_is_left(const struct reserve *reserve);

/* Enclose the call; account_begin has reserved `most`. False: more was taken, which stays charged until it is freed;
 * account_exceed says whether it is allowed. */
HIDDEN void reserve_begin(struct reserve *reserve, uint64_t most);
HIDDEN bool reserve_end(struct reserve *reserve, uint64_t most);

/* Reread the reserve, around a call that makes it smaller. */
HIDDEN void reserve_begin_shrink(struct reserve *reserve);
HIDDEN void reserve_end_shrink(struct reserve *reserve);

/* From now on other processes can hold a part of it under that name, and so possibly all. */
HIDDEN CUresult reserve_export(struct reserve *reserve, uint64_t name);

/* Implements cuMemPoolDestroy. */
HIDDEN CUresult reserve_destroy(struct reserve *reserve);

/* Of all reserves on a card. The first returns what they keep unused; true if there was any. */
HIDDEN bool reserves_shrink(unsigned card);
HIDDEN void reserves_reread(unsigned card);

/* As a part of the session. */
HIDDEN uint64_t reserves_tick(void);
HIDDEN void reserves_forget(void);
