/* Memory that graphs allocate and free.
 *
 * An allocation of a graph has its address from the creation of its node, and a piece of the card from a launch until
 * it is freed: by the graph, by another one, or by the program. Unused pieces stay with the device for the next launch
 * of any graph, until they are trimmed or the card is full. Not modelled: graphs that run at the same time need
 * separate pieces, even if each frees what it allocates.
 */
#include "heap.h"

#include <stdlib.h>

struct cached {
    u64 piece, bytes;
    struct cached *next;
};

/* Memory that one device keeps for graphs. */
struct account {
    struct cached *cached;
    u64 used, used_high, reserved, reserved_high;
};

struct graph_memory {
    struct device *device;
    u64 address, bytes, rounded;
    struct cached *piece; /* NULL: not currently allocated */
    struct range *range;
    u32 references;       /* nodes that allocate or free it, plus one while it is allocated */
};

static struct account accounts[SIM_CARDS]; /* by ordinal */

static void raise(u64 *high, u64 now) {
    if (now > *high) *high = now;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static struct cached *cached_take(struct account *account, u64 bytes) {
    for (struct cached **link = &account->cached; *link; link = &(*link)->next) {
        struct cached *found = *link;
        if (found->bytes != bytes) continue;
        *link = found->next;
        return found;
    }
    return NULL;
}

static CUresult piece_new(struct device *device, u64 bytes, struct cached **made) {
    struct account *account = &accounts[device->ordinal];
    struct cached *piece = malloc(sizeof *piece);
    u64 id;
    const CUresult result = piece ? piece_take(device, SIM_GRAPH, bytes, &id) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        free(piece);
        return result;
    }
    *piece = (struct cached){.piece = id, .bytes = bytes};
    account->reserved += bytes;
    raise(&account->reserved_high, account->reserved);
    *made = piece;
    return CUDA_SUCCESS;
}

bool graph_memory_trim(const struct device *device) {
    struct account *account = &accounts[device->ordinal];
    const bool any = account->cached;
    for (struct cached *piece; (piece = account->cached);) {
        account->cached = piece->next;
        account->reserved -= piece->bytes;
        piece_give(piece->piece);
        free(piece);
    }
    return any;
}

/* ---- allocations ------------------------------------------------------------------------------------------------- */

static void drop(void *argument) {
    struct graph_memory *memory = argument;
    if (--memory->references) return;
    range_remove(memory->range);
    arena_give(memory->address, memory->bytes);
    free(memory);
}

static void drop_unlocked(void *argument) {
    LOCKED;
    drop(argument);
}

static CUresult allocate(struct graph_memory *memory) {
    struct account *account = &accounts[memory->device->ordinal];
    if (memory->piece) return CUDA_ERROR_INVALID_VALUE; /* its last launch left it allocated */
    memory->piece = cached_take(account, memory->rounded);
    if (!memory->piece) TRY(piece_new(memory->device, memory->rounded, &memory->piece));
    account->used += memory->rounded;
    raise(&account->used_high, account->used);
    memory->references++;
    return CUDA_SUCCESS;
}

static CUresult allocate_unlocked(void *argument) {
    LOCKED;
    return allocate(argument);
}

static CUresult release(struct graph_memory *memory) {
    struct account *account = &accounts[memory->device->ordinal];
    if (!memory->piece) return CUDA_ERROR_INVALID_VALUE;
    account->used -= memory->rounded;
    memory->piece->next = account->cached;
    account->cached = memory->piece;
    memory->piece = NULL;
    drop(memory);
    return CUDA_SUCCESS;
}

static CUresult release_unlocked(void *argument) {
    LOCKED;
    return release(argument);
}

CUresult graph_memory_free(struct range *range) { return release(range->owner); }

/* Reserves an address without card memory behind it: that comes with a launch. One reference is the caller's. */
static CUresult memory_new(struct device *device, u64 bytes, struct graph_memory **made) {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    struct graph_memory *memory = malloc(sizeof *memory);
    const u64 address = memory ? arena_take(bytes, 0) : 0;
    const struct range like = {
        .start = address,
        .bytes = bytes,
        .kind = RANGE_GRAPH,
        .device = device,
        .data = address && keeps_data(device, bytes) ? arena_data(address) : NULL,
        .owner = memory,
    };
    struct range *range = address ? range_add(&like) : NULL;
    if (!range) {
        if (address) arena_give(address, bytes);
        free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *memory = (struct graph_memory){
        .device = device,
        .address = address,
        .bytes = bytes,
        .rounded = round_up(bytes, GRAPH_GRANULARITY),
        .range = range,
        .references = 1,
    };
    *made = memory;
    return CUDA_SUCCESS;
}

/* Frees all of it: graphs that would still free it find it unallocated. */
void graph_memory_device_gone(const struct device *device) {
    for (struct range *range = ranges_all, *next; range; range = next) {
        next = range->next;
        if (range->device == device && range->kind == RANGE_GRAPH) release(range->owner);
    }
    graph_memory_trim(device);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

CUresult memory_alloc_work(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct work *work) {
    struct device *device;
    if (params->pool.type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (params->pool.handle_types != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_INVALID_VALUE;
    TRY(location_device(&params->pool.location, &device));
    LOCKED;
    struct graph_memory *memory;
    TRY(memory_new(device, params->bytes, &memory));
    params->address = memory->address;
    *work = (struct work){
        .kind = NODE_ALLOC, .run = allocate_unlocked, .drop = drop_unlocked, .argument = memory, .allocates = params};
    return CUDA_SUCCESS;
}

CUresult memory_free_work(CUdeviceptr address, struct work *work) {
    LOCKED;
    const struct range *range = range_starting(address, RANGE_GRAPH);
    if (!range) return CUDA_ERROR_INVALID_VALUE;
    struct graph_memory *memory = range->owner;
    memory->references++;
    *work = (struct work){.kind = NODE_FREE, .run = release_unlocked, .drop = drop_unlocked, .argument = memory};
    return CUDA_SUCCESS;
}

CUresult graph_memory_capture(struct cuda_stream *stream, u64 bytes, CUdeviceptr *address) {
    struct work work;
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .pool = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, stream_device(stream)->ordinal}},
        .bytes = bytes,
    };
    TRY(memory_alloc_work(&params, &work));
    TRY(capture_add(stream, &work)); /* on failure this drops the work */
    *address = params.address;
    return CUDA_SUCCESS;
}

CUresult graph_memory_capture_free(struct cuda_stream *stream, CUdeviceptr address) {
    struct work work;
    TRY(memory_free_work(address, &work));
    return capture_add(stream, &work);
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

CALL(cuDeviceGraphMemTrim, CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    TRY(capture_forbids_unsafe());
    LOCKED;
    graph_memory_trim(device);
    return CUDA_SUCCESS;
}

CALL(cuDeviceGetGraphMemAttribute, CUdevice ordinal, CUgraphMem_attribute attribute, void *value) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    LOCKED;
    const struct account *account = &accounts[device->ordinal];
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: *(u64 *)value = account->used; break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *(u64 *)value = account->used_high; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: *(u64 *)value = account->reserved; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *(u64 *)value = account->reserved_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
