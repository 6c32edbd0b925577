/* Pools and virtual memory shared between processes: parcels in descriptors that programs send each other. */
#define _GNU_SOURCE
#include "heap.h"
#include "ipc.h"
#include "vmm.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static CUresult parcel_send(const struct parcel *parcel, int *descriptor) {
    KEEP_ERRNO;
    const int file = memfd_create("simgpu-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    if (write(file, parcel, sizeof *parcel) != sizeof *parcel) {
        close(file);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    *descriptor = file;
    return CUDA_SUCCESS;
}

/* The handle *is* the descriptor, passed as a pointer. It remains the program's. */
static CUresult parcel_receive(const void *handle, enum parcel_kind kind, struct parcel *parcel) {
    KEEP_ERRNO;
    const int file = (int)(intptr_t)handle;
    if (file < 0 || pread(file, parcel, sizeof *parcel, 0) != sizeof *parcel) return CUDA_ERROR_INVALID_VALUE;
    return parcel_valid(parcel, kind) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_type(u32 type) {
    if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_SUCCESS;
    return type == CU_MEM_HANDLE_TYPE_NONE ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- virtual memory ---------------------------------------------------------------------------------------------- */

static CUresult vmm_parcel(struct vmm *memory, struct parcel *parcel) {
    if (!memory->shared) TRY(piece_share(memory->piece, &memory->token));
    memory->shared = true;
    *parcel = parcel_new(PARCEL_VMM, memory->device);
    parcel->token = memory->token;
    parcel->offset = memory->offset;
    parcel->bytes = memory->bytes;
    return CUDA_SUCCESS;
}

CALL(cuMemExportToShareableHandle, void *descriptor, CUmemGenericAllocationHandle handle, unsigned type, u64 flags) {
    struct parcel parcel;
    TRY(driver_ready());
    TRY(check_type(type));
    LOCKED;
    struct vmm *memory = vmm_valid(handle);
    if (!descriptor || !memory || flags || !(memory->properties.handle_types & type)) return CUDA_ERROR_INVALID_VALUE;
    TRY(vmm_parcel(memory, &parcel));
    return parcel_send(&parcel, descriptor);
}

static CUresult vmm_import(const struct parcel *parcel, struct vmm **imported) {
    struct vmm fresh = {.bytes = parcel->bytes, .offset = parcel->offset, .token = parcel->token};
    struct sim_reply piece;
    TRY(parcel_open(parcel, &fresh.device, &piece, &fresh.address));
    fresh.piece = piece.id;
    fresh.shared = fresh.imported = true;
    fresh.properties = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, fresh.device->ordinal},
    };
    *imported = piece.bytes == fresh.bytes ? vmm_add(&fresh) : NULL;
    if (*imported) return CUDA_SUCCESS;
    piece_give(piece.id);
    arena_restore(fresh.address, piece.bytes);
    arena_give(fresh.address, piece.bytes);
    return piece.bytes == fresh.bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}

/* In the process that created it, or has it already, it is another handle of the same memory. */
CALL(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *handle, void *descriptor, unsigned type) {
    struct parcel parcel;
    TRY(driver_ready());
    TRY(check_type(type));
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    TRY(parcel_receive(descriptor, PARCEL_VMM, &parcel));
    LOCKED;
    struct vmm *memory = vmm_of_token(&parcel.token);
    if (!memory) TRY(vmm_import(&parcel, &memory));
    memory->handles++;
    *handle = (u64)memory;
    return CUDA_SUCCESS;
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

CALL(cuMemPoolExportToShareableHandle, void *descriptor, CUmemoryPool pool, unsigned type, u64 flags) {
    TRY(driver_ready());
    TRY(check_type(type));
    LOCKED;
    if (!descriptor || flags || !pool_valid(pool)) return CUDA_ERROR_INVALID_VALUE;
    if (pool->imported || !(pool->handle_types & type)) return CUDA_ERROR_INVALID_VALUE;
    const struct parcel parcel = parcel_new(PARCEL_POOL, pool->heap.device);
    return parcel_send(&parcel, descriptor);
}

CALL(cuMemPoolImportFromShareableHandle, CUmemoryPool *made, void *descriptor, unsigned type, u64 flags) {
    struct parcel parcel;
    struct device *device;
    TRY(driver_ready());
    TRY(check_type(type));
    if (!made || flags) return CUDA_ERROR_INVALID_VALUE;
    TRY(parcel_receive(descriptor, PARCEL_POOL, &parcel));
    TRY(device_with_card(parcel.card, &device));
    LOCKED;
    struct cuda_pool *pool = pool_new(device, false, CU_MEM_HANDLE_TYPE_NONE, 0);
    if (!pool) return CUDA_ERROR_OUT_OF_MEMORY;
    pool->imported = true;
    *made = pool;
    return CUDA_SUCCESS;
}

CALL(cuMemPoolExportPointer, CUmemPoolPtrExportData *data, CUdeviceptr address) {
    struct parcel parcel;
    TRY(driver_ready());
    LOCKED;
    const struct range *range = range_starting(address, RANGE_POOL);
    if (!data || !range) return CUDA_ERROR_INVALID_VALUE;
    const struct segment *segment = range->owner;
    if (!segment->chunk->heap->pool->handle_types) return CUDA_ERROR_INVALID_VALUE;
    TRY(parcel_of_range(range, PARCEL_POOL_POINTER, &parcel));
    memcpy(data, &parcel, sizeof parcel);
    return CUDA_SUCCESS;
}

CALL(cuMemPoolImportPointer, CUdeviceptr *address, CUmemoryPool pool, const CUmemPoolPtrExportData *data) {
    struct parcel parcel;
    TRY(driver_ready());
    if (!address || !data) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&parcel, data, sizeof parcel);
    LOCKED;
    if (!pool_valid(pool) || !pool->imported || !parcel_valid(&parcel, PARCEL_POOL_POINTER))
        return CUDA_ERROR_INVALID_VALUE;
    return import_new(&parcel, RANGE_POOL_IPC, NULL, address);
}
