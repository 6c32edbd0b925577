/* Heaps: the memory from which cuMemAlloc and pools allocate. Everything here is locked. */
#pragma once

#include "memory.h"
#include "streams.h"

/* The frees of one stream, in order: the n-th is complete when the work before it is. */
struct order {
    u64 stream;      /* its key */
    u64 last, done;  /* number of the latest free, and of the latest completed one */
    u64 references;  /* segments and pending notes */
    struct order *next;
};

/* A permanent name of a stream: handles are reused, and default streams have the same number in each context. */
static inline u64 order_key(const struct cuda_stream *stream) { return stream->context->id << 32 ^ stream->id; }

/* The order of a stream, created if necessary (NULL: no memory on the host), or only if it exists. */
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
    struct extension *extensions; /* of a pool's chunk: its later extensions, newest first */
    u64 used;                /* bytes in used segments */
    u64 largest;             /* upper bound of the free segments' sizes */
    bool whole;              /* dedicated to one request */
    bool grows;              /* growing now: none of it is returned */
    bool shared;             /* other processes may have it, by `token` */
    struct sim_token token;
    struct segment *first;
    struct chunk *next, *previous;
};

struct segment {
    struct chunk *chunk;
    u64 start, bytes;
    u64 asked;               /* of a used segment: the size requested */
    bool used;
    struct order *order;     /* of a free segment: the frees that must complete first; NULL: available to all */
    u64 number;              /* number of that free */
    struct segment *next, *previous;
};

struct heap {
    struct device *device;
    struct cuda_context *context;
    struct cuda_pool *pool;       /* NULL: of cuMemAlloc */
    bool exposed;            /* its addresses are accessible to the host: managed memory */
    u32 kind;                /* of its pieces */
    u64 growth;              /* chunk sizes are multiples of this */
    u64 whole_from;          /* requests from this size on get a dedicated chunk */
    u64 most;                /* maximum bytes; 0: no limit */
    u64 reserved, reserved_high, used, used_high;
    struct chunk *chunks;
    struct heap *next;
};

/* Cuts a segment. Memory freed by `order` (may be NULL) is available before those frees complete. */
CUresult heap_take(struct heap *heap, u64 bytes, const struct order *order, struct segment **taken);

/* Frees the segment, for all (NULL) or once this order has reached this point. A pool keeps empty chunks until
 * heap_trim; unused memory of cuMemAlloc is returned at once. */
void heap_give(struct segment *segment, struct order *order);

/* Returns empty chunks while more than `keep` bytes are reserved. True if there were any. */
bool heap_trim(struct heap *heap, u64 keep);

/* Returns all chunks, including used ones. */
void heap_empty(struct heap *heap);

/* For programs' memory: adds the range of a segment, which is freed with it. */
CUresult segment_range(struct segment *segment, u64 bytes, enum range_kind kind, CUdeviceptr *address);

/* ---- pools.c ----------------------------------------------------------------------------------------------------- */

struct cuda_pool {
    struct heap heap;
    u64 threshold; /* unused bytes kept beyond a synchronization */
    int reuse[3]; /* by event dependencies, opportunistic, by internal dependencies: only stored */
    u32 handle_types;
    bool managed, imported, destroyed;
    struct cuda_pool *next;
};

/* Whether the handle denotes a usable pool. */
bool pool_valid(const struct cuda_pool *pool);

/* NULL: no memory on the host. */
struct cuda_pool *pool_new(struct device *device, bool managed, u32 handle_types, u64 most);
struct cuda_pool *pool_standard(struct device *device, bool managed);
struct cuda_pool *pool_current(struct device *device, bool managed);
CUresult pool_choose(struct device *device, bool managed, struct cuda_pool *pool);
CUresult pool_destroy(struct cuda_pool *pool);

/* After a thread synchronized: returns what pools of the device keep beyond their thresholds. */
void pools_settle(const struct device *device);
