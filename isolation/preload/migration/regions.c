/* A region: constant addresses, and pieces of physical memory that are mapped behind them and unmapped. */
#include "migration.h"

#include "../memory/memory.h"
#include "../presence/presence.h"

REAL_CALL(cuCtxGetCurrent, CUcontext *context);
REAL_CALL(cuCtxSetCurrent, CUcontext context);
REAL_CALL(cuCtxGetDevice, CUdevice *device);
REAL_CALL(cuCtxSynchronize, void);
REAL_CALL(cuMemAddressReserve, CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wish, uint64_t flags);
REAL_CALL(cuMemAddressFree, CUdeviceptr address, size_t bytes);
REAL_CALL(cuMemCreate, CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *like,
          unsigned long long flags);
REAL_CALL(cuMemRelease, CUmemGenericAllocationHandle handle);
REAL_CALL(cuMemMap, CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
          uint64_t flags);
REAL_CALL(cuMemUnmap, CUdeviceptr address, size_t bytes);
REAL_CALL(cuMemSetAccess, CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count);
REAL_CALL(cuMemHostRegister_v2, void *address, size_t bytes, unsigned flags);
REAL_CALL(cuMemHostUnregister, void *address);
REAL_CALL(cuMemcpyDtoHAsync_v2, void *to, CUdeviceptr from, size_t bytes, CUstream stream);
REAL_CALL(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
REAL_CALL(cuStreamCreate, CUstream *stream, unsigned flags);
REAL_CALL(cuStreamSynchronize, CUstream stream);
REAL_CALL(cuStreamDestroy_v2, CUstream stream);

#define BLOCK (2ull << 20)

/* Copies under way at once: enough that the work between strides does not matter, few enough to report often. */
enum { STRIDE = 8 };

struct piece {
    void *host; /* its bytes while it is off the card; kept for the next time */
    bool is_out, is_pinned;
};

struct region {
    struct region *next, *before;
    CUdeviceptr address;
    CUcontext context;
    CUdevice device;
    size_t asked, bytes, taken; /* asked: by the program; taken: from the system, for this structure */
    uint32_t serial; /* held_now() from before it was created */
    unsigned many;
    struct piece pieces[];
};

/* Two locks that are never nested: the table's own are for lookups, this one is for the list. No driver function is
 * called under it. */
static struct os_lock listing;
static struct region *first;
static struct table regions;
static struct amounts sum; /* under `listing` */

static void *of(const struct entry *entry) { return (void *)entry->of; }

static uint64_t length(const struct region *region, unsigned number) {
    const uint64_t begins = number * PIECE_BYTES;
    return region->bytes - begins < PIECE_BYTES ? region->bytes - begins : PIECE_BYTES;
}

static CUdeviceptr where(const struct region *region, unsigned number) {
    return region->address + number * PIECE_BYTES;
}

static void count(int64_t resident, int64_t moved) {
    os_lock(&listing);
    sum.resident += (uint64_t)resident;
    sum.moved += (uint64_t)moved;
    os_unlock(&listing);
}

struct amounts regions_amounts(void) {
    os_lock(&listing);
    const struct amounts now = sum;
    os_unlock(&listing);
    return now;
}

/* ---- one piece --------------------------------------------------------------------------------------------------- */

/* The handle is not kept: the memory lives as long as it is mapped. */
static CUresult back_with_card(const struct region *region, unsigned number) {
    const CUmemAllocationProp like = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, region->device},
    };
    const CUmemAccessDesc access = {.location = like.location, .access = CU_MEM_ACCESS_READWRITE};
    const CUdeviceptr address = where(region, number);
    const uint64_t bytes = length(region, number);
    CUmemGenericAllocationHandle handle;
    TRY(DRIVER(REAL(cuMemCreate)(&handle, bytes, &like, 0)));
    CUresult result = DRIVER(REAL(cuMemMap)(address, bytes, 0, handle, 0));
    DRIVER(REAL(cuMemRelease)(handle));
    if (result != CUDA_SUCCESS) return result;
    result = DRIVER(REAL(cuMemSetAccess)(address, bytes, &access, 1));
    if (result != CUDA_SUCCESS) DRIVER(REAL(cuMemUnmap)(address, bytes));
    return result;
}

static void let_go_of_card(const struct region *region, unsigned number) {
    DRIVER(REAL(cuMemUnmap)(where(region, number), length(region, number)));
}

/* Anonymous pages of this process, charged to the container's cgroup. A copy works without pinning, only slower. */
static bool back_with_host(struct region *region, unsigned number) {
    struct piece *piece = &region->pieces[number];
    if (piece->host) return true;
    piece->host = os_map_lazily(length(region, number));
    if (!piece->host) return false;
    piece->is_pinned = DRIVER(REAL(cuMemHostRegister_v2)(piece->host, length(region, number), 0)) == CUDA_SUCCESS;
    return true;
}

static void let_go_of_host(struct region *region, unsigned number) {
    struct piece *piece = &region->pieces[number];
    if (!piece->host) return;
    if (piece->is_pinned) DRIVER(REAL(cuMemHostUnregister)(piece->host));
    os_unmap(piece->host, length(region, number));
    *piece = (struct piece){.is_out = piece->is_out};
}

/* ---- creation and destruction of a region ------------------------------------------------------------------------ */

static void list(struct region *region) {
    os_lock(&listing);
    region->next = first;
    if (first) first->before = region;
    first = region;
    sum.resident += region->bytes;
    os_unlock(&listing);
    presence_news();
}

static void unlist(struct region *region) {
    uint64_t out = 0;
    for (unsigned n = 0; n < region->many; n++)
        if (region->pieces[n].is_out) out += length(region, n);
    os_lock(&listing);
    *(region->before ? &region->before->next : &first) = region->next;
    if (region->next) region->next->before = region->before;
    sum.resident -= region->bytes - out;
    sum.moved -= out;
    os_unlock(&listing);
}

/* Releases the first `many` pieces of it, and its addresses. */
static void dissolve(struct region *region, unsigned many) {
    for (unsigned n = 0; n < many; n++) {
        if (!region->pieces[n].is_out) let_go_of_card(region, n);
        let_go_of_host(region, n);
    }
    DRIVER(REAL(cuMemAddressFree)(region->address, region->bytes));
    os_unmap(region, region->taken);
}

static CUresult fill(struct region *region) {
    for (unsigned n = 0; n < region->many; n++) {
        const CUresult result = back_with_card(region, n);
        if (result != CUDA_SUCCESS) return dissolve(region, n), result;
    }
    const struct entry entry = {.key = region->address, .bytes = region->bytes, .of = (uint64_t)region, .times = 1};
    struct entry before;
    if (!table_put(&regions, &entry, &before)) return dissolve(region, region->many), CUDA_ERROR_OUT_OF_MEMORY;
    list(region);
    return CUDA_SUCCESS;
}

CUresult region_make(CUdeviceptr *address, size_t bytes) {
    struct region like = {.asked = bytes, .serial = held_now()};
    if (bytes < LEAST_BYTES || bytes > UINT64_MAX / 2) return CUDA_ERROR_NOT_SUPPORTED;
    if (DRIVER(REAL(cuCtxGetCurrent)(&like.context)) != CUDA_SUCCESS || !like.context) return CUDA_ERROR_NOT_SUPPORTED;
    TRY(DRIVER(REAL(cuCtxGetDevice)(&like.device)));
    like.bytes = (bytes + BLOCK - 1) / BLOCK * BLOCK;
    like.many = (unsigned)((like.bytes + PIECE_BYTES - 1) / PIECE_BYTES);
    like.taken = sizeof like + like.many * sizeof *like.pieces;
    if (DRIVER(REAL(cuMemAddressReserve)(&like.address, like.bytes, BLOCK, 0, 0)) != CUDA_SUCCESS)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct region *region = os_map(like.taken);
    if (!region) {
        DRIVER(REAL(cuMemAddressFree)(like.address, like.bytes));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *region = like;
    *address = like.address;
    return fill(region);
}

/* A program that frees memory may have work under way there, which the driver waits for. */
bool region_free(CUdeviceptr address, CUresult *result) {
    struct entry entry;
    if (!table_get(&regions, address, &entry)) return false;
    *result = DRIVER(REAL(cuCtxSynchronize)());
    if (*result != CUDA_SUCCESS || !table_take(&regions, address, &entry)) return true;
    struct region *region = of(&entry);
    unlist(region);
    dissolve(region, region->many);
    return true;
}

struct search {
    CUdeviceptr address;
    struct region *found;
};

static bool has(const struct entry *entry, void *argument) {
    struct search *search = argument;
    if (search->address - entry->key < entry->bytes) search->found = of(entry);
    return false;
}

bool region_at(CUdeviceptr address, struct span *span) {
    struct search search = {.address = address};
    struct entry entry;
    if (table_get(&regions, address, &entry))
        search.found = of(&entry);
    else
        table_sweep(&regions, has, &search);
    if (!search.found) return false;
    *span = (struct span){search.found->address, search.found->asked, search.found->context};
    return true;
}

/* What a context held before that moment; one created since may have the same handle. */
struct ending {
    CUcontext context;
    uint32_t since;
};

static bool has_ended(const struct region *region, const struct ending *ending) {
    return region->context == ending->context && (int32_t)(region->serial - ending->since) < 0;
}

static bool ends(const struct entry *entry, void *ending) { return has_ended(of(entry), ending); }

/* Regions are listed until they are gone; one removed from the table cannot be taken by another thread. */
static struct region *next_of(const struct ending *ending) {
    os_lock(&listing);
    struct region *region = first;
    while (region && !has_ended(region, ending)) region = region->next;
    os_unlock(&listing);
    return region;
}

void regions_context_gone(CUcontext context, uint32_t since) {
    if (table_is_empty(&regions)) return;
    struct ending ending = {context, since};
    presence_enter();
    table_sweep(&regions, ends, &ending);
    for (struct region *region = next_of(&ending); region; region = next_of(&ending)) {
        unlist(region);
        dissolve(region, region->many);
    }
    presence_leave();
}

/* ---- moving: no thread is inside the barrier, so the list does not change ---------------------------------------- */

CUresult regions_settle(void) {
    for (const struct region *region = first; region; region = region->next) {
        if (region->before && region->before->context == region->context) continue;
        TRY(DRIVER(REAL(cuCtxSetCurrent)(region->context)));
        TRY(DRIVER(REAL(cuCtxSynchronize)()));
    }
    return CUDA_SUCCESS;
}

/* Pieces of one context that move together. */
struct stride {
    struct region *regions[STRIDE];
    unsigned numbers[STRIDE], many;
    uint64_t bytes;
    CUstream stream;
};

static CUresult begin(struct stride *stride, CUcontext context) {
    if (stride->stream) return CUDA_SUCCESS;
    TRY(DRIVER(REAL(cuCtxSetCurrent)(context)));
    return DRIVER(REAL(cuStreamCreate)(&stride->stream, CU_STREAM_NON_BLOCKING));
}

static CUresult copy_out(struct stride *stride, struct region *region, unsigned number) {
    TRY(begin(stride, region->context));
    if (!back_with_host(region, number)) return CUDA_ERROR_OUT_OF_MEMORY;
    return DRIVER(REAL(cuMemcpyDtoHAsync_v2)(region->pieces[number].host, where(region, number), length(region, number),
                                             stride->stream));
}

static CUresult copy_back(struct stride *stride, struct region *region, unsigned number) {
    TRY(begin(stride, region->context));
    TRY(back_with_card(region, number));
    const CUresult result = DRIVER(REAL(cuMemcpyHtoDAsync_v2)(where(region, number), region->pieces[number].host,
                                                              length(region, number), stride->stream));
    if (result != CUDA_SUCCESS) let_go_of_card(region, number);
    return result;
}

/* Begins copies of pieces that are out, or of those that are not, up to `most` bytes. */
static CUresult gather(struct stride *stride, bool are_out, uint64_t most,
                       CUresult (*copy)(struct stride *, struct region *, unsigned)) {
    for (struct region *region = first; region; region = region->next) {
        if (stride->many && region->context != stride->regions[0]->context) continue;
        for (unsigned n = 0; n < region->many && stride->many < STRIDE; n++) {
            if (region->pieces[n].is_out != are_out || stride->bytes + length(region, n) > most) continue;
            TRY(copy(stride, region, n));
            stride->regions[stride->many] = region;
            stride->numbers[stride->many++] = n;
            stride->bytes += length(region, n);
        }
    }
    return CUDA_SUCCESS;
}

static CUresult wait_for(struct stride *stride) {
    if (!stride->stream) return CUDA_SUCCESS;
    const CUresult result = DRIVER(REAL(cuStreamSynchronize)(stride->stream));
    DRIVER(REAL(cuStreamDestroy_v2)(stride->stream));
    return result;
}

/* A piece is either on the card or on the host; that changes only once its copy is complete. */
static void moved(const struct stride *stride, bool out) {
    for (unsigned n = 0; n < stride->many; n++) {
        struct region *region = stride->regions[n];
        region->pieces[stride->numbers[n]].is_out = out;
        if (out) let_go_of_card(region, stride->numbers[n]);
    }
    count(out ? -(int64_t)stride->bytes : (int64_t)stride->bytes,
          out ? (int64_t)stride->bytes : -(int64_t)stride->bytes);
}

static void undo(const struct stride *stride, bool out) {
    for (unsigned n = 0; n < stride->many && !out; n++) let_go_of_card(stride->regions[n], stride->numbers[n]);
}

static CUresult move(bool out, uint64_t most, CUresult (*copy)(struct stride *, struct region *, unsigned)) {
    struct stride stride = {0};
    const CUresult gathered = gather(&stride, !out, most, copy), copied = wait_for(&stride);
    if (copied != CUDA_SUCCESS) return undo(&stride, out), copied;
    moved(&stride, out);
    return stride.many ? CUDA_SUCCESS : gathered;
}

CUresult regions_take_out(uint64_t keep) {
    const struct amounts now = regions_amounts();
    const uint64_t least = now.resident > keep ? now.resident - keep : 0;
    return move(true, (least + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES, copy_out);
}

CUresult regions_put_back(uint64_t most) {
    const struct amounts now = regions_amounts();
    return move(false, most > now.resident ? most - now.resident : 0, copy_back);
}
