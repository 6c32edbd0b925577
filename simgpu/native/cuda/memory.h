/* Memory inside libcuda: interfaces between its files, and those for graphs.
 *
 *   pieces  bytes of a card, taken from simgpud      arena   addresses, and the data behind small allocations
 *   ranges  the use of addresses                     heap.h  chunks of a card, from which segments are cut
 *
 * A *piece* occupies card memory, an *address* names it, *data* can be read: three independent things. A graph's
 * allocation always has an address but a piece only while it is allocated; virtual memory has a piece long before an
 * address; allocations larger than DATA_MOST have no data, unless the card has at most SMALL_CARD.
 *
 * `memory_lock` guards all of this. It is the innermost lock: with it held, only simgpud is called outside these files;
 * driver_lock may be held when it is taken. "Locked:" marks functions that require it.
 *
 * | size                                  |                                             | known from           |
 * |---------------------------------------|---------------------------------------------|----------------------|
 * | BLOCK_BYTES                           | block size of cuMemAlloc                    | NVML deltas, others' |
 * | VMM_GRANULARITY                       | minimum and recommended granularity         | documented use       |
 * | PITCH                                 | cuMemAllocPitch                             | programs that print  |
 * | ALIGNMENT                             | of addresses; 256 is promised               | a guess              |
 * | WHOLE_FROM                            | larger allocations get their own blocks     | a guess              |
 * | POOL_GROWTH                           | step by which a pool's reserve grows        | reserved-current     |
 * | ARRAY_TILE                            | arrays are rounded up to it                 | a guess              |
 * | GRAPH_GRANULARITY                     | graph allocations are rounded up to it      | a guess              |
 * | DATA_MOST, SMALL_CARD, ARENA_BYTES    | ours: limits of the simulation              | -                    |
 * The guesses are to be compared with a real card. */
#pragma once

#include "driver.h"
#include "driver/cuda_abi.h"

#include <errno.h>

#define BLOCK_BYTES (2 * SIM_MIB)
#define VMM_GRANULARITY (2 * SIM_MIB)
#define WHOLE_FROM (1 * SIM_MIB)
#define POOL_GROWTH (32 * SIM_MIB)
#define GRAPH_GRANULARITY (2 * SIM_MIB)
#define ARRAY_TILE (64ull << 10)
#define PITCH 512ull
#define ALIGNMENT 512ull
#define DATA_MOST (16 * SIM_MIB)
#define SMALL_CARD (8192 * SIM_MIB)
#ifndef ARENA_BYTES /* less for tools that need most of the address space themselves */
#define ARENA_BYTES (8ull << 40)
#endif

/* Holds memory_lock to the end of the block. */
#define LOCKED HOLD(memory_lock)
extern pthread_mutex_t memory_lock;

/* Restores errno at the end of the block. */
#define KEEP_ERRNO __attribute__((cleanup(errno_restore), unused)) const int errno_kept = errno
static inline void errno_restore(const int *kept) { errno = *kept; }

static inline u64 round_up(u64 bytes, u64 step) { return (bytes + step - 1) / step * step; }

static inline bool keeps_data(const struct device *device, u64 bytes) {
    return bytes <= DATA_MOST || device->about->model.memory <= SMALL_CARD;
}

/* ---- pieces.c: bytes of a card ----------------------------------------------------------------------------------- */

/* Locked: takes bytes of the device. On a full card the unused memory of pools and graphs is returned first. */
CUresult piece_take(struct device *device, u32 kind, u64 bytes, u64 *piece);
void piece_give(u64 piece);

/* Locked: the managed memory of this process is used on the card; how many bytes of it were paged in, and how many of
 * any process were paged out for them. */
CUresult pieces_page(const struct device *device, u64 *came, u64 *left);

/* Locked: publishes the piece to other processes, with our data file, or opens what another one published. */
CUresult piece_share(u64 piece, struct sim_token *token);
CUresult piece_open(const struct sim_token *token, struct sim_reply *reply, int *file);

/* ---- arena.c: addresses and data --------------------------------------------------------------------------------- */

/* Locked: an address range that nothing else in this process uses; 0: none. `alignment` is a power of two; less than 2
 * MiB means 2 MiB. */
u64 arena_take(u64 bytes, u64 alignment);
/* Locked: takes exactly that range. False: it is in use. */
bool arena_take_at(u64 address, u64 bytes);
void arena_give(u64 address, u64 bytes);

/* Locked: replaces arena_give if another process may have the data: neither data nor address are reused. */
void arena_retire(u64 address, u64 bytes);

/* Whether an address is in the arena, used or not. */
bool arena_has(u64 address);

/* Where the host can access the data of an address; pages are allocated when touched. */
void *arena_data(u64 address);

/* Locked: makes the address itself accessible to the host. */
bool arena_expose(u64 address, u64 bytes);

/* Locked: maps another process's file as the data at `address`. */
bool arena_import(u64 address, u64 bytes, int file, u64 offset);

/* Locked: undoes the previous two, before arena_give. */
void arena_restore(u64 address, u64 bytes);

/* Locked: the descriptor of the data file, and the offset in it. */
int arena_file(void);
u64 arena_offset(u64 address);

/* ---- ranges.c: the use of addresses ------------------------------------------------------------------------------ */

enum range_kind {
    RANGE_BLOCK, /* cuMemAlloc; owner: struct segment */
    RANGE_POOL, /* cuMemAllocAsync; owner: struct segment */
    RANGE_MANAGED, /* owner: struct managed */
    RANGE_GRAPH, /* owner: struct graph_memory */
    RANGE_MAPPED, /* cuMemMap; owner: struct mapping */
    RANGE_IPC, /* cuIpcOpenMemHandle; owner: struct import */
    RANGE_POOL_IPC, /* cuMemPoolImportPointer; owner: struct import */
    RANGE_ARRAY, /* not visible to programs; owner: struct cuda_array */
    RANGE_HOST, /* cuMemHostAlloc */
    RANGE_REGISTERED, /* cuMemHostRegister */
};

struct range {
    u64 start, bytes;
    enum range_kind kind;
    u32 flags; /* as given by the program */
    struct device *device;
    struct cuda_context *context; /* NULL: belongs to none */
    char *data; /* data of its first byte; NULL: none */
    void *owner;
    void (*gone)(struct range *range); /* frees the range and its owner; for ranges that are freed with a context */
    u64 id; /* unique in this process */
    bool closed; /* mapped, but without access so far */
    struct range *next, *previous;
};

extern struct range *ranges_all;

/* Locked. NULL: no memory on the host, or the addresses are used. */
struct range *range_add(const struct range *like);
void range_remove(struct range *range);

/* Locked: the range that contains this address, or NULL; the one of this kind that starts there, or NULL. */
struct range *range_at(u64 address);
struct range *range_starting(u64 address, enum range_kind kind);

/* Locked: whether all these bytes are accessible memory. */
bool ranges_cover(u64 address, u64 bytes);

static inline bool range_on_host(const struct range *range) {
    return range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED;
}

/* ---- freed with a context, or with the last one of a device; all locked ------------------------------------------ */

void arrays_context_gone(const struct cuda_context *context);
void pools_device_gone(const struct device *device);
void graph_memory_device_gone(const struct device *device);
void vmm_device_gone(const struct device *device);

/* Return the unused memory of the device's pools and graphs. True if there was any. */
bool pools_trim(const struct device *device);
bool graph_memory_trim(const struct device *device);

/* parts.c: all functions that do so. pieces.c, which is below them, calls them through this table; NULL ends it. */
extern bool (*const trims[])(const struct device *device);

/* ---- copies.c ---------------------------------------------------------------------------------------------------- */

/* How long the card takes to move that many bytes, over the bus or within the card. */
u64 transfer_ns(const struct device *device, u64 bytes, bool bus);

/* ---- graph_memory.c ---------------------------------------------------------------------------------------------- */

/* cuMemAllocAsync and cuMemFreeAsync in a capturing stream. Not locked. */
CUresult graph_memory_capture(struct cuda_stream *stream, u64 bytes, CUdeviceptr *address);
CUresult graph_memory_capture_free(struct cuda_stream *stream, CUdeviceptr address);

/* Locked: frees, outside a graph, what it left allocated. */
CUresult graph_memory_free(struct range *range);
