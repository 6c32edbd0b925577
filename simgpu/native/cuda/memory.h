/* Memory inside libcuda: what its files ask of each other, and what graphs ask of them.
 *
 *   pieces  bytes of a card, taken from simgpud      arena   addresses, and the data behind small memory
 *   ranges  which addresses are what                 heap.h  chunks of a card, from which segments are cut
 *
 * A *piece* costs, an *address* names, *data* can be read: three different things. A graph's allocation has an address
 * all its life but a piece only while it is allocated; virtual memory has a piece long before an address; what is
 * greater than DATA_MOST has no data, unless all the card has no more than SMALL_CARD.
 *
 * `memory_lock` guards all of this. It is the innermost lock: nothing outside these files is called with it held, but
 * simgpud; driver_lock may be held when it is taken. "Locked:" marks functions that want it held.
 *
 * | size                                  |                                             | known from           |
 * |---------------------------------------|---------------------------------------------|----------------------|
 * | BLOCK_BYTES                           | cuMemAlloc takes the card in such blocks    | NVML deltas, others' |
 * | VMM_GRANULARITY                       | minimum and recommended granularity         | documented use       |
 * | PITCH                                 | cuMemAllocPitch                             | programs that print  |
 * | ALIGNMENT                             | of addresses; 256 is promised               | a guess              |
 * | WHOLE_FROM                            | from here on an allocation has own blocks   | a guess              |
 * | POOL_GROWTH                           | a pool's reserve grows in such steps        | reserved-current     |
 * | ARRAY_TILE                            | arrays are rounded up to it                 | a guess              |
 * | GRAPH_GRANULARITY                     | graph allocations are rounded up to it      | a guess              |
 * | DATA_MOST, SMALL_CARD, ARENA_BYTES    | ours: what a simulation can afford          | -                    |
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
#ifndef ARENA_BYTES /* less where a tool needs most of the address space itself */
#define ARENA_BYTES (8ull << 40)
#endif

/* Holds memory_lock to the end of the block. */
#define LOCKED HOLD(memory_lock)
extern pthread_mutex_t memory_lock;

/* Leaves errno as it was to the end of the block. */
#define KEEP_ERRNO __attribute__((cleanup(errno_restore), unused)) const int errno_kept = errno
static inline void errno_restore(const int *kept) { errno = *kept; }

static inline u64 round_up(u64 bytes, u64 step) { return (bytes + step - 1) / step * step; }

static inline bool keeps_data(const struct device *device, u64 bytes) {
    return bytes <= DATA_MOST || device->about->model.memory <= SMALL_CARD;
}

/* ---- pieces.c: bytes of a card ----------------------------------------------------------------------------------- */

/* Locked: takes bytes of the device. On a full card what pools and graphs keep unused goes back first. */
CUresult piece_take(struct device *device, u32 kind, u64 bytes, u64 *piece);
void piece_give(u64 piece);

/* Locked: the managed memory of this process is used on the card; how many bytes of it came, and how many of anybody's
 * left for them. */
CUresult pieces_page(const struct device *device, u64 *came, u64 *left);

/* Locked: makes the piece known to other processes, with our data file, or opens what another one made known. */
CUresult piece_share(u64 piece, struct sim_token *token);
CUresult piece_open(const struct sim_token *token, struct sim_reply *reply, int *file);

/* ---- arena.c: addresses and data --------------------------------------------------------------------------------- */

/* Locked: an address for so many bytes that nothing else in this process has; 0: there is none. `alignment` is a power
 * of two; less than 2 MiB means 2 MiB. */
u64 arena_take(u64 bytes, u64 alignment);
/* Locked: exactly there. False: it is in use. */
bool arena_take_at(u64 address, u64 bytes);
void arena_give(u64 address, u64 bytes);

/* Locked: instead of arena_give when another process may have the data: neither they nor the address are used again. */
void arena_retire(u64 address, u64 bytes);

/* Whether an address is of the arena, whatever is there. */
bool arena_has(u64 address);

/* Where the host can read and write what is at an address; the pages come when they are touched. */
void *arena_data(u64 address);

/* Locked: makes the address itself readable and writable by the host. */
bool arena_expose(u64 address, u64 bytes);

/* Locked: the data at `address` are now those of another process's file. */
bool arena_import(u64 address, u64 bytes, int file, u64 offset);

/* Locked: undoes the two, before arena_give. */
void arena_restore(u64 address, u64 bytes);

/* Locked: the descriptor of the file that has the data, and where in it. */
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
    RANGE_ARRAY, /* not told to programs; owner: struct cuda_array */
    RANGE_HOST, /* cuMemHostAlloc */
    RANGE_REGISTERED, /* cuMemHostRegister */
};

struct range {
    u64 start, bytes;
    enum range_kind kind;
    u32 flags; /* as the program gave them */
    struct device *device;
    struct cuda_context *context; /* NULL: belongs to none */
    char *data; /* of its first byte; NULL: it has none */
    void *owner;
    void (*gone)(struct range *range); /* frees the range and what it stands for; of those that go with a context */
    u64 id; /* unique in this process */
    bool closed; /* mapped, but no access was granted yet */
    struct range *next, *previous;
};

extern struct range *ranges_all;

/* Locked. NULL: no memory on the host, or the addresses are taken. */
struct range *range_add(const struct range *like);
void range_remove(struct range *range);

/* Locked: the range that has this address, or NULL; the one that starts there and is of this kind, or NULL. */
struct range *range_at(u64 address);
struct range *range_starting(u64 address, enum range_kind kind);

/* Locked: whether all these bytes are memory that may be used. */
bool ranges_cover(u64 address, u64 bytes);

static inline bool range_on_host(const struct range *range) {
    return range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED;
}

/* ---- freed with a context, or with the last one of a device; all locked ------------------------------------------ */

void arrays_context_gone(const struct cuda_context *context);
void pools_device_gone(const struct device *device);
void graph_memory_device_gone(const struct device *device);
void vmm_device_gone(const struct device *device);

/* Give back what pools and graphs of the device keep unused. Whether anything went. */
bool pools_trim(const struct device *device);
bool graph_memory_trim(const struct device *device);

/* parts.c: all that give back so. pieces.c, below them, knows them by this table alone; NULL ends it. */
extern bool (*const trims[])(const struct device *device);

/* ---- copies.c ---------------------------------------------------------------------------------------------------- */

/* How long the card needs to move so many bytes, over the bus or on the card. */
u64 transfer_ns(const struct device *device, u64 bytes, bool bus);

/* ---- graph_memory.c ---------------------------------------------------------------------------------------------- */

/* What cuMemAllocAsync and cuMemFreeAsync are in a capturing stream. Not locked. */
CUresult graph_memory_capture(struct cuda_stream *stream, u64 bytes, CUdeviceptr *address);
CUresult graph_memory_capture_free(struct cuda_stream *stream, CUdeviceptr address);

/* Locked: what a graph left allocated is freed outside it. */
CUresult graph_memory_free(struct range *range);
