/* Memory shared between processes: parcels, imports, and cuIpc*.
 *
 * A parcel names a piece by simgpud's token and says where its data are in the file of the exporting process; simgpud
 * keeps that file for processes that open the token. The importer holds the piece, so it outlives its exporter.
 */
#define _GNU_SOURCE
#include "ipc.h"
#include "heap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARCEL_MAGIC = 0x5347504d };

#define PAGE 4096ull

struct import {
    struct parcel parcel;
    u64 piece, address, bytes; /* of the whole piece */
    u32 references;
};

/* ---- parcels ----------------------------------------------------------------------------------------------------- */

static u64 own_number(void) {
    static u64 number;
    if (!number && getrandom(&number, sizeof number, 0) != sizeof number) number = sim_now();
    return number;
}

struct parcel parcel_new(enum parcel_kind kind, const struct device *device) {
    return (struct parcel){.magic = PARCEL_MAGIC, .kind = kind, .process = own_number(), .card = device->card};
}

bool parcel_valid(const struct parcel *parcel, enum parcel_kind kind) {
    return parcel->magic == PARCEL_MAGIC && parcel->kind == (u32)kind;
}

CUresult parcel_of_range(const struct range *range, enum parcel_kind kind, struct parcel *parcel) {
    const struct segment *segment = range->owner;
    struct chunk *chunk = segment->chunk;
    if (!chunk->shared) TRY(piece_share(chunk->piece, &chunk->token));
    chunk->shared = true;
    *parcel = parcel_new(kind, range->device);
    parcel->token = chunk->token;
    parcel->offset = arena_offset(chunk->address);
    parcel->inside = range->start - chunk->address;
    parcel->bytes = range->bytes;
    return CUDA_SUCCESS;
}

CUresult device_with_card(u32 card, struct device **device) {
    for (CUdevice ordinal = 0;; ordinal++) {
        TRY(device_of(ordinal, device));
        if ((*device)->card == card) return CUDA_SUCCESS;
    }
}

/* Whether the file has these bytes: touching a page beyond its end raises SIGBUS. */
static bool file_has(int file, u64 offset, u64 bytes) {
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0 || offset % PAGE) return false;
    return bytes <= (u64)about.st_size && offset <= (u64)about.st_size - bytes;
}

/* Maps the pages with the parcel's data at `address`, where the piece begins. */
static bool show(const struct device *device, const struct parcel *parcel, u64 address, u64 piece_bytes, int file) {
    const u64 first = parcel->inside / PAGE * PAGE;
    const u64 bytes = round_up(parcel->inside + parcel->bytes, PAGE) - first;
    if (!keeps_data(device, parcel->bytes)) return true;
    return file_has(file, parcel->offset, piece_bytes) &&
           arena_import(address + first, bytes, file, parcel->offset + first);
}

static bool inside(const struct parcel *parcel, u64 piece_bytes) {
    return parcel->bytes && parcel->bytes <= piece_bytes && parcel->inside <= piece_bytes - parcel->bytes;
}

static CUresult show_opened(const struct device *device, const struct parcel *parcel, const struct sim_reply *piece,
                            int file, u64 *address) {
    if (!inside(parcel, piece->bytes)) return CUDA_ERROR_INVALID_VALUE;
    *address = arena_take(piece->bytes, 0);
    if (!*address) return CUDA_ERROR_OUT_OF_MEMORY;
    if (show(device, parcel, *address, piece->bytes, file)) return CUDA_SUCCESS;
    arena_give(*address, piece->bytes);
    return CUDA_ERROR_MAP_FAILED;
}

CUresult parcel_open(const struct parcel *parcel, struct device **device, struct sim_reply *piece, u64 *address) {
    KEEP_ERRNO;
    int file;
    TRY(piece_open(&parcel->token, piece, &file));
    CUresult result = device_with_card(piece->count, device);
    if (result == CUDA_SUCCESS) result = show_opened(*device, parcel, piece, file, address);
    if (result != CUDA_SUCCESS) piece_give(piece->id);
    if (file >= 0) close(file);
    return result;
}

/* ---- imports ----------------------------------------------------------------------------------------------------- */

static struct range *import_known(const struct parcel *parcel, enum range_kind kind) {
    struct range *range = ranges_all;
    for (; range; range = range->next) {
        if (range->kind != kind) continue;
        const struct import *import = range->owner;
        if (memcmp(&import->parcel, parcel, sizeof *parcel) == 0) return range;
    }
    return NULL;
}

/* Releases the piece and the address. */
static void import_end(struct import *import) {
    piece_give(import->piece);
    arena_restore(import->address, import->bytes);
    arena_give(import->address, import->bytes);
    free(import);
}

static void import_free(struct range *range) {
    struct import *import = range->owner;
    range_remove(range);
    import_end(import);
}

static CUresult import_add(struct import *import, const struct range *like, CUdeviceptr *address) {
    if (!range_add(like)) {
        import_end(import);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = like->start;
    return CUDA_SUCCESS;
}

CUresult import_new(const struct parcel *parcel, enum range_kind kind, struct cuda_context *context,
                    CUdeviceptr *address) {
    struct range *known = kind == RANGE_IPC ? import_known(parcel, kind) : NULL;
    if (known) {
        ((struct import *)known->owner)->references++;
        *address = known->start;
        return CUDA_SUCCESS;
    }
    struct import *import = malloc(sizeof *import);
    struct device *device;
    struct sim_reply piece;
    u64 start;
    const CUresult result = import ? parcel_open(parcel, &device, &piece, &start) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        free(import);
        return result;
    }
    *import = (struct import){*parcel, .piece = piece.id, .address = start, .bytes = piece.bytes, .references = 1};
    const struct range like = {
        .start = start + parcel->inside,
        .bytes = parcel->bytes,
        .kind = kind,
        .device = device,
        .context = context,
        .data = keeps_data(device, parcel->bytes) ? arena_data(start + parcel->inside) : NULL,
        .owner = import,
        .gone = import_free,
    };
    return import_add(import, &like, address);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

CALL(cuIpcGetMemHandle, CUipcMemHandle *handle, CUdeviceptr address) {
    struct cuda_context *context;
    TRY(context_current(&context));
    LOCKED;
    const struct range *range = range_at(address);
    struct parcel parcel;
    if (!handle || !range || range->kind != RANGE_BLOCK) return CUDA_ERROR_INVALID_VALUE;
    TRY(parcel_of_range(range, PARCEL_IPC, &parcel));
    memcpy(handle, &parcel, sizeof parcel);
    return CUDA_SUCCESS;
}

CALL(cuIpcOpenMemHandle_v2, CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    enum { LAZY_PEER_ACCESS = 1 };
    struct cuda_context *context;
    struct parcel parcel;
    TRY(context_current(&context));
    memcpy(&parcel, &handle, sizeof parcel);
    if (!address || flags != LAZY_PEER_ACCESS || !parcel_valid(&parcel, PARCEL_IPC)) return CUDA_ERROR_INVALID_VALUE;
    LOCKED;
    if (parcel.process == own_number()) return CUDA_ERROR_INVALID_CONTEXT; /* only other processes can open it */
    return import_new(&parcel, RANGE_IPC, context, address);
}

/* Before 11.0: the same under another name. */
CALL(cuIpcOpenMemHandle, CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    return cuIpcOpenMemHandle_v2(address, handle, flags);
}

CALL(cuIpcCloseMemHandle, CUdeviceptr address) {
    struct cuda_context *context;
    TRY(context_current(&context));
    LOCKED;
    struct range *range = range_starting(address, RANGE_IPC);
    if (!range) return CUDA_ERROR_INVALID_VALUE;
    struct import *import = range->owner;
    if (--import->references == 0) import_free(range);
    return CUDA_SUCCESS;
}
