/* Virtual memory management: memory without an address, addresses without memory, and mappings between them.
 *
 * Memory takes a piece of the card when it is created; it lives as long as a handle or a mapping of it. Its data are at
 * an arena address that no program learns, so any number of addresses can map them.
 */
#include "vmm.h"

#include <stdlib.h>
#include <string.h>

/* Reserved addresses; what is mapped there are ranges. */
struct reservation {
    u64 start, bytes;
    struct reservation *next;
};

struct mapping {
    struct vmm *memory;
    u32 access[SIM_CARDS]; /* by ordinal */
};

static struct vmm *all;
static struct reservation *reservations;

static bool aligned(u64 value) { return value % VMM_GRANULARITY == 0; }

/* ---- memory ------------------------------------------------------------------------------------------------------ */

struct vmm *vmm_valid(CUmemGenericAllocationHandle handle) {
    struct vmm *memory = all;
    while (memory && (u64)memory != handle) memory = memory->next;
    return memory && memory->handles ? memory : NULL;
}

struct vmm *vmm_of_token(const struct sim_token *token) {
    struct vmm *memory = all;
    while (memory && !(memory->shared && memcmp(&memory->token, token, sizeof *token) == 0)) memory = memory->next;
    return memory;
}

struct vmm *vmm_add(const struct vmm *like) {
    struct vmm *memory = malloc(sizeof *memory);
    if (!memory) return NULL;
    *memory = *like;
    memory->next = all;
    all = memory;
    return memory;
}

static void vmm_end(struct vmm *memory) {
    UNLINK(all, memory, next);
    piece_give(memory->piece);
    if (memory->imported) arena_restore(memory->address, memory->bytes);
    if (memory->imported || !memory->shared)
        arena_give(memory->address, memory->bytes);
    else
        arena_retire(memory->address, memory->bytes);
    free(memory);
}

static void vmm_drop(struct vmm *memory) {
    if (!memory->handles && !memory->mappings) vmm_end(memory);
}

/* Supported memory: on a device, exportable as a descriptor or not at all. */
static CUresult check(const CUmemAllocationProp *like, struct device **device) {
    if (!like || like->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (like->handle_types & ~(u32)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    return location_device(&like->location, device);
}

CALL(cuMemGetAllocationGranularity, size_t *granularity, const CUmemAllocationProp *like, unsigned which) {
    struct device *device;
    TRY(driver_ready());
    if (!granularity || which > 1) return CUDA_ERROR_INVALID_VALUE;
    TRY(check(like, &device));
    *granularity = VMM_GRANULARITY;
    return CUDA_SUCCESS;
}

CALL(cuMemCreate, CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *like, u64 flags) {
    struct device *device;
    TRY(driver_ready());
    if (!handle || !bytes || !aligned(bytes) || flags) return CUDA_ERROR_INVALID_VALUE;
    TRY(check(like, &device));
    TRY(device_fault(device));
    LOCKED;
    struct vmm fresh = {.device = device, .bytes = bytes, .properties = *like, .handles = 1};
    fresh.properties.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal};
    fresh.address = arena_take(bytes, 0);
    if (!fresh.address) return CUDA_ERROR_OUT_OF_MEMORY;
    fresh.offset = arena_offset(fresh.address);
    CUresult result = piece_take(device, SIM_VMM, bytes, &fresh.piece);
    if (result == CUDA_SUCCESS) {
        struct vmm *memory = vmm_add(&fresh);
        if (memory)
            *handle = (u64)memory;
        else
            piece_give(fresh.piece), result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) arena_give(fresh.address, bytes);
    return result;
}

CALL(cuMemRelease, CUmemGenericAllocationHandle handle) {
    TRY(driver_ready());
    LOCKED;
    struct vmm *memory = vmm_valid(handle);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    memory->handles--;
    vmm_drop(memory);
    return CUDA_SUCCESS;
}

CALL(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *handle, const void *address) {
    TRY(driver_ready());
    LOCKED;
    const struct range *range = range_at((u64)address);
    if (!handle || !range || range->kind != RANGE_MAPPED) return CUDA_ERROR_INVALID_VALUE;
    const struct mapping *mapping = range->owner;
    mapping->memory->handles++;
    *handle = (u64)mapping->memory;
    return CUDA_SUCCESS;
}

CALL(cuMemGetAllocationPropertiesFromHandle, CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle) {
    TRY(driver_ready());
    LOCKED;
    const struct vmm *memory = vmm_valid(handle);
    if (!properties || !memory) return CUDA_ERROR_INVALID_VALUE;
    *properties = memory->properties;
    return CUDA_SUCCESS;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* A requested fixed address is only a hint, and ignored here. */
CALL(cuMemAddressReserve, CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wish, u64 flags) {
    (void)wish;
    TRY(driver_ready());
    if (!address || !bytes || !aligned(bytes) || flags) return CUDA_ERROR_INVALID_VALUE;
    if (alignment & (alignment - 1)) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > ARENA_BYTES) return CUDA_ERROR_OUT_OF_MEMORY;
    LOCKED;
    struct reservation *made = malloc(sizeof *made);
    const u64 start = made ? arena_take(bytes, alignment) : 0;
    if (!start) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct reservation){.start = start, .bytes = bytes, .next = reservations};
    reservations = made;
    *address = start;
    return CUDA_SUCCESS;
}

static bool mapped_somewhere(u64 start, u64 bytes) {
    const u64 end = start + bytes;
    while (start < end && !range_at(start)) start += VMM_GRANULARITY;
    return start < end;
}

CALL(cuMemAddressFree, CUdeviceptr address, size_t bytes) {
    TRY(driver_ready());
    LOCKED;
    struct reservation **link = &reservations;
    while (*link && (*link)->start != address) link = &(*link)->next;
    struct reservation *found = *link;
    if (!found || found->bytes != bytes || mapped_somewhere(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    *link = found->next;
    free(found);
    arena_give(address, bytes);
    return CUDA_SUCCESS;
}

static bool reserved(u64 address, u64 bytes) {
    const struct reservation *each = reservations;
    while (each && !(address >= each->start && bytes <= each->bytes && address - each->start <= each->bytes - bytes))
        each = each->next;
    return each;
}

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

CALL(cuMemMap, CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, u64 flags) {
    TRY(driver_ready());
    if (!bytes || !aligned(address) || !aligned(bytes) || !aligned(offset) || flags) return CUDA_ERROR_INVALID_VALUE;
    LOCKED;
    struct vmm *memory = vmm_valid(handle);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > memory->bytes || offset > memory->bytes - bytes) return CUDA_ERROR_NOT_SUPPORTED;
    if (!reserved(address, bytes) || mapped_somewhere(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    struct mapping *mapping = calloc(1, sizeof *mapping);
    const struct range like = {
        .start = address,
        .bytes = bytes,
        .kind = RANGE_MAPPED,
        .device = memory->device,
        .data = keeps_data(memory->device, memory->bytes) ? (char *)arena_data(memory->address) + offset : NULL,
        .owner = mapping,
        .closed = true,
    };
    if (!mapping || !range_add(&like)) {
        free(mapping);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mapping->memory = memory;
    memory->mappings++;
    return CUDA_SUCCESS;
}

static void unmap(struct range *range) {
    struct mapping *mapping = range->owner;
    mapping->memory->mappings--;
    vmm_drop(mapping->memory);
    free(mapping);
    range_remove(range);
}

/* Whether whole, adjacent mappings cover exactly these addresses. */
static bool mapped_exactly(u64 address, u64 bytes) {
    const u64 end = address + bytes;
    while (address < end) {
        const struct range *range = range_starting(address, RANGE_MAPPED);
        if (!range) return false;
        address += range->bytes;
    }
    return address == end;
}

/* Whether every mapping in this range is completely inside it. */
static bool maps_whole(u64 address, u64 bytes) {
    const u64 end = address + bytes;
    while (address < end) {
        const struct range *range = range_at(address);
        if (range && range->start != address) return false;
        address += range ? range->bytes : VMM_GRANULARITY;
    }
    return address == end;
}

/* Addresses without mappings are skipped. */
CALL(cuMemUnmap, CUdeviceptr address, size_t bytes) {
    TRY(driver_ready());
    LOCKED;
    if (!bytes || !aligned(address) || !aligned(bytes) || !reserved(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (!maps_whole(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    for (u64 start = address; start < address + bytes; start += VMM_GRANULARITY) {
        struct range *range = range_at(start);
        if (range) unmap(range);
    }
    return CUDA_SUCCESS;
}

/* ---- access ------------------------------------------------------------------------------------------------------ */

static CUresult check_access(const CUmemAccessDesc *wanted) {
    struct device *device;
    if (wanted->access != CU_MEM_ACCESS_NONE && wanted->access != CU_MEM_ACCESS_READ &&
        wanted->access != CU_MEM_ACCESS_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    if (wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    return device_of(wanted->location.id, &device);
}

static void grant(struct range *range, const CUmemAccessDesc *wanted) {
    struct mapping *mapping = range->owner;
    mapping->access[wanted->location.id] = wanted->access;
    range->closed = true;
    for (int n = 0; n < SIM_CARDS; n++)
        if (mapping->access[n]) range->closed = false;
}

CALL(cuMemSetAccess, CUdeviceptr address, size_t bytes, const CUmemAccessDesc *wanted, size_t count) {
    TRY(driver_ready());
    if (!wanted || !count || !bytes || address + bytes < address) return CUDA_ERROR_INVALID_VALUE;
    for (size_t n = 0; n < count; n++) TRY(check_access(&wanted[n]));
    LOCKED;
    if (!mapped_exactly(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    for (u64 start = address; start < address + bytes;) {
        struct range *range = range_at(start);
        for (size_t n = 0; n < count; n++) grant(range, &wanted[n]);
        start += range->bytes;
    }
    return CUDA_SUCCESS;
}

CALL(cuMemGetAccess, unsigned long long *access, const CUmemLocation *location, CUdeviceptr address) {
    struct device *device;
    TRY(driver_ready());
    if (!access || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    TRY(device_of(location->id, &device));
    LOCKED;
    const struct range *range = range_at(address);
    if (!range || range->kind != RANGE_MAPPED) return CUDA_ERROR_INVALID_VALUE;
    const struct mapping *mapping = range->owner;
    *access = mapping->access[location->id];
    return CUDA_SUCCESS;
}

void vmm_device_gone(const struct device *device) {
    for (struct range *range = ranges_all, *next; range; range = next) {
        next = range->next;
        if (range->kind == RANGE_MAPPED && range->device == device) unmap(range);
    }
    for (struct vmm *memory = all, *next; memory; memory = next) {
        next = memory->next;
        if (memory->device == device) vmm_end(memory);
    }
}
