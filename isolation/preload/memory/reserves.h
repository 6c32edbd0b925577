/* What pools and graphs keep of a card: the driver's own number, read again whenever it may have changed.
 *
 * A call that may make a reserve grow is enclosed by reserve_begin and reserve_end, with the most that it may grow
 * reserved in the account. Several calls at once share what they reserved: a growth is taken from the reservation of
 * whichever of them sees it first.
 */
#pragma once

#include "memory.h"

struct reserve;

/* A pool that is known. NULL: it is not, or is on the host. */
HIDDEN struct reserve *reserve_of_pool(CUmemoryPool pool);
/* The same of one that the driver gives out for a place and a type of memory, and that is known from now on. NULL: on
 * the host, of no card of ours, of a size that the driver does not tell, or one too many. */
HIDDEN struct reserve *reserve_met_pool(CUmemoryPool pool, const CUmemLocation *location, unsigned type);
/* Whether a pool that was met is on the host, and costs no card anything. */
HIDDEN bool reserve_pool_on_host(CUmemoryPool pool);
/* The driver has destroyed it. */
HIDDEN void reserve_pool_gone(CUmemoryPool pool);
/* Of all graphs on a card. */
HIDDEN struct reserve *reserve_of_graphs(unsigned card);

HIDDEN unsigned reserve_card(const struct reserve *reserve);
/* The program has destroyed the pool, and something of it is still in use. */
HIDDEN bool reserve_is_left(const struct reserve *reserve);

/* CUDA_SUCCESS: the call may be made, and must be followed by reserve_end with the same number. */
HIDDEN CUresult reserve_begin(struct reserve *reserve, uint64_t most);
/* An error: more was taken than may be had. It is charged all the same, until it is gone. */
HIDDEN CUresult reserve_end(struct reserve *reserve, uint64_t most);

/* Reads it, around a call that makes it smaller. */
HIDDEN void reserve_begin_shrink(struct reserve *reserve);
HIDDEN void reserve_end_shrink(struct reserve *reserve);

/* Other processes can hold some of what it has, by that name, and so perhaps all. */
HIDDEN CUresult reserve_export(struct reserve *reserve, uint64_t name);

/* What cuMemPoolDestroy does. */
HIDDEN CUresult reserve_destroy(struct reserve *reserve);

/* As a part of the session. */
HIDDEN uint64_t reserves_tick(void);
HIDDEN void reserves_forget(void);
