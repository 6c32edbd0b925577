/* Heaps: where cuMemAlloc and pools cut memory from. Everything here is locked. */
#pragma once

#include "memory.h"
#include "streams.h"

/* Frees of one stream, in their order: the n-th is done when the work before it is. */
struct order {
    u64 stream;      /* its key */
    u64 last, done;  /* the number of the latest free, and of the latest one that is done */
    u64 references;  /* segments and pending notes */
    struct order *next;
};

/* Names a stream for ever: handles come again, and default streams have the same number in each context. */
static inline u64 order_key(const struct cuda_stream *stream) { return stream->context->id << 32 ^ stream->id; }

/* That of a stream, made if it isn't there (NULL: no memory on the host), or only if it is. */
struct order *order_of(u64 stream);
struct order *order_known(u64 stream);
void order_drop(struct order *order);

struct heap;

struct extension {
    u64 piece, bytes;
    struct extension *before;
};

struct chunk {
    struct heap *heap;
    u64 piece, address, bytes;
    struct extension *extensions; /* of a pool's: by which it grew since, the last one first */
    u64 used;                /* bytes in segments in use */
    u64 largest;             /* no free segment is greater */
    bool whole;              /* for one request alone */
    bool grows;              /* just now: nothing of it goes back */
    bool shared;             /* other processes may have it, by `token` */
    struct sim_token token;
    struct segment *first;
    struct chunk *next, *previous;
};

struct segment {
    struct chunk *chunk;
    u64 start, bytes;
    u64 asked;               /* of one in use: what a program asked for */
    bool used;
    struct order *order;     /* free segments: whose free must be done first; NULL: free for all */
    u64 number;              /* of that free */
    struct segment *next, *previous;
};

struct heap {
    struct device *device;
    struct cuda_context *context;
    struct cuda_pool *pool;       /* NULL: cuMemAlloc's */
    bool exposed;            /* the host can use its addresses: managed memory */
    u32 kind;                /* of its pieces */
    u64 growth;              /* a chunk is a multiple of this */
    u64 whole_from;          /* such requests get a chunk of their own */
    u64 most;                /* it never has more bytes; 0: no bound */
    u64 reserved, reserved_high, used, used_high;
    struct chunk *chunks;
    struct heap *next;
};

/* Cuts a segment. Memory freed by `order` (may be NULL) can be had before those frees are done. */
CUresult heap_take(struct heap *heap, u64 bytes, const struct order *order, struct segment **taken);

/* The segment is free, for all (NULL) or once this order has come so far. A pool keeps empty chunks until
 * heap_trim; what cuMemAlloc no longer uses goes back at once. */
void heap_give(struct segment *segment, struct order *order);

/* Gives empty chunks back while more than `keep` bytes are reserved. Whether any went. */
bool heap_trim(struct heap *heap, u64 keep);

/* Gives all chunks back, whatever is in use. */
void heap_empty(struct heap *heap);

/* For programs' memory: adds the range of a segment, with which it goes back. */
CUresult segment_range(struct segment *segment, u64 bytes, enum range_kind kind, CUdeviceptr *address);

/* ---- pools.c ----------------------------------------------------------------------------------------------------- */

struct cuda_pool {
    struct heap heap;
    u64 threshold; /* what it keeps unused beyond a synchronisation */
    int reuse[3]; /* by event dependencies, opportunistic, by internal dependencies: only remembered */
    u32 handle_types;
    bool managed, imported, destroyed;
    struct cuda_pool *next;
};

/* Whether it is one that can be used. */
bool pool_valid(const struct cuda_pool *pool);

/* NULL: no memory on the host. */
struct cuda_pool *pool_new(struct device *device, bool managed, u32 handle_types, u64 most);
struct cuda_pool *pool_standard(struct device *device, bool managed);
struct cuda_pool *pool_current(struct device *device, bool managed);
CUresult pool_choose(struct device *device, bool managed, struct cuda_pool *pool);
CUresult pool_destroy(struct cuda_pool *pool);

/* After a thread synchronised: gives back what pools of the device keep beyond their thresholds. */
void pools_settle(const struct device *device);
