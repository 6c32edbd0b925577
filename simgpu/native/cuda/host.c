/* Pinned host memory. Nothing is really pinned; its addresses are tracked, and it takes no card memory. */
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

enum { ALLOC_FLAGS = 7, REGISTER_FLAGS = 15, DEVICE_MAP = 2 };

static u64 page_round(u64 bytes) { return round_up(bytes, (u64)sysconf(_SC_PAGESIZE)); }

static void host_free(struct range *range) {
    KEEP_ERRNO;
    munmap((void *)range->start, page_round(range->bytes));
    range_remove(range);
}

static CUresult host_add(struct cuda_context *context, void *start, u64 bytes, enum range_kind kind, u32 flags) {
    LOCKED;
    const struct range like = {
        .start = (u64)start,
        .bytes = bytes,
        .kind = kind,
        .flags = flags,
        .device = context->device,
        .context = context,
        .data = start,
        .gone = kind == RANGE_HOST ? host_free : range_remove,
    };
    return range_add(&like) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

static CUresult host_take(void **address, size_t bytes, u32 flags) {
    KEEP_ERRNO;
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!address || !bytes || flags & ~(u32)ALLOC_FLAGS) return CUDA_ERROR_INVALID_VALUE;
    TRY(capture_forbids_unsafe());
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    if (host_add(context, start, bytes, RANGE_HOST, flags) != CUDA_SUCCESS) {
        munmap(start, page_round(bytes));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = start;
    return CUDA_SUCCESS;
}

/* With unified addressing all of it is accessible from the card. */
CALL(cuMemAllocHost_v2, void **address, size_t bytes) { return host_take(address, bytes, DEVICE_MAP); }

CALL(cuMemHostAlloc, void **address, size_t bytes, unsigned flags) { return host_take(address, bytes, flags); }

CALL(cuMemFreeHost, void *address) {
    struct cuda_context *context;
    TRY(context_current(&context));
    TRY(capture_forbids_unsafe());
    LOCKED;
    struct range *range = range_starting((u64)address, RANGE_HOST);
    if (!range) return CUDA_ERROR_INVALID_VALUE;
    host_free(range);
    return CUDA_SUCCESS;
}

CALL(cuMemHostRegister_v2, void *address, size_t bytes, unsigned flags) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!address || !bytes || flags & ~(u32)REGISTER_FLAGS) return CUDA_ERROR_INVALID_VALUE;
    TRY(capture_forbids_unsafe());
    return host_add(context, address, bytes, RANGE_REGISTERED, flags);
}

CALL(cuMemHostRegister, void *address, size_t bytes, unsigned flags) {
    return cuMemHostRegister_v2(address, bytes, flags);
}

CALL(cuMemHostUnregister, void *address) {
    struct cuda_context *context;
    TRY(context_current(&context));
    TRY(capture_forbids_unsafe());
    LOCKED;
    struct range *range = range_at((u64)address);
    if (!range || range->kind != RANGE_REGISTERED) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (range->start != (u64)address) return CUDA_ERROR_INVALID_VALUE;
    range_remove(range);
    return CUDA_SUCCESS;
}

CALL(cuMemHostGetDevicePointer_v2, CUdeviceptr *address, void *host, unsigned flags) {
    struct cuda_context *context;
    TRY(context_current(&context));
    LOCKED;
    const struct range *range = range_at((u64)host);
    if (!address || flags || !range || !range_on_host(range)) return CUDA_ERROR_INVALID_VALUE;
    *address = (u64)host;
    return CUDA_SUCCESS;
}

/* Always includes DEVICE_MAP: unified addressing maps all. */
CALL(cuMemHostGetFlags, unsigned *flags, void *host) {
    struct cuda_context *context;
    TRY(context_current(&context));
    LOCKED;
    const struct range *range = range_at((u64)host);
    if (!flags || !range || !range_on_host(range)) return CUDA_ERROR_INVALID_VALUE;
    *flags = range->flags | DEVICE_MAP;
    return CUDA_SUCCESS;
}
