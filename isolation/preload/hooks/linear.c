/* cuMemAlloc and related calls: memory of the current context, with an address. */
#include "../memory/shared.h"
#include "hooks.h"

#include <string.h>

HOOK_CALL(cuMemFree_v2, CUdeviceptr address) {
    struct entry what;
    const bool held = held_take(HELD_MEMORY, address, &what), opened = !held && shared_take(address, &what);
    const CUresult result = DRIVER(REAL(cuMemFree_v2)(address));
    if (held) held_end(HELD_MEMORY, &what, result == CUDA_SUCCESS, true);
    if (opened) shared_taken(&what, result == CUDA_SUCCESS);
    return result;
}

/* A call that takes memory in the current context. */
struct taking {
    unsigned card;
    CUcontext context;
    uint64_t most; /* bytes reserved for it */
    uint64_t mark; /* HELD_HIDDEN or 0 */
};

static CUresult take_begin(const struct taking *taking) {
    TRY(account_begin(taking->card, taking->most));
    if (taking->mark) account_hide(taking->card, taking->most, 0);
    return CUDA_SUCCESS;
}

/* `charged` bytes of it are held, possibly more than reserved. */
static void take_end(const struct taking *taking, uint64_t charged) {
    const uint64_t more = charged > taking->most ? charged - taking->most : 0, less = taking->most + more - charged;
    account_correct(taking->card, more, 0);
    if (taking->mark) account_hide(taking->card, more, less);
    account_end(taking->card, less);
}

/* The driver has allocated the bytes at the address. If they exceed the reservation and the limit, they are freed
 * again; the program does not know of them yet. */
static CUresult took(const struct taking *taking, CUdeviceptr address, uint64_t bytes) {
    const struct entry what = {
        .key = address, .bytes = bytes | taking->mark, .of = (uint64_t)taking->context, .card = (uint16_t)taking->card};
    uint64_t charged;
    if (!held_note(HELD_MEMORY, &what, &charged)) {
        DRIVER(REAL(cuMemFree_v2)(address));
        take_end(taking, 0);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    take_end(taking, charged);
    const CUresult result = charged > taking->most ? account_exceed(taking->card) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) hook_cuMemFree_v2(address);
    return result;
}

/* Invalid arguments are passed to the driver unchanged. */
HOOK_CALL(cuMemAlloc_v2, CUdeviceptr *address, size_t bytes) {
    struct taking taking = {.most = round_up(bytes, BLOCK_BYTES)};
    CUdeviceptr made;
    if (!address || !bytes || !current_card(&taking.card, &taking.context))
        return DRIVER(REAL(cuMemAlloc_v2)(address, bytes));
    TRY(take_begin(&taking));
    const CUresult result = DRIVER(REAL(cuMemAlloc_v2)(&made, bytes));
    if (result != CUDA_SUCCESS) return take_end(&taking, 0), result;
    TRY(took(&taking, made, bytes));
    *address = made;
    return CUDA_SUCCESS;
}

HOOK_CALL(cuMemAllocManaged, CUdeviceptr *address, size_t bytes, unsigned flags) {
    struct taking taking = {.most = round_up(bytes, BLOCK_BYTES)};
    CUdeviceptr made;
    if (!address || !bytes || !current_card(&taking.card, &taking.context))
        return DRIVER(REAL(cuMemAllocManaged)(address, bytes, flags));
    taking.mark = managed_is_hidden() ? HELD_HIDDEN : 0;
    TRY(take_begin(&taking));
    const CUresult result = DRIVER(REAL(cuMemAllocManaged)(&made, bytes, flags));
    if (result != CUDA_SUCCESS) return take_end(&taking, 0), result;
    TRY(took(&taking, made, bytes));
    *address = made;
    return CUDA_SUCCESS;
}

/* Rows begin at multiples of the driver's alignment: 512 bytes so far; more is requested if it turns out larger. */
HOOK_CALL(cuMemAllocPitch_v2, CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element) {
    enum { LIKELY_PITCH = 512 };
    struct taking taking = {0};
    uint64_t bytes;
    if (!address || !pitch || !width || !height || !current_card(&taking.card, &taking.context))
        return DRIVER(REAL(cuMemAllocPitch_v2)(address, pitch, width, height, element));
    if (__builtin_mul_overflow(round_up(width, LIKELY_PITCH), height, &bytes)) bytes = UINT64_MAX / 2;
    taking.most = round_up(bytes, BLOCK_BYTES);
    CUdeviceptr made;
    size_t made_pitch;
    TRY(take_begin(&taking));
    CUresult result = DRIVER(REAL(cuMemAllocPitch_v2)(&made, &made_pitch, width, height, element));
    if (result != CUDA_SUCCESS) return take_end(&taking, 0), result;
    TRY(took(&taking, made, made_pitch * height));
    *address = made;
    *pitch = made_pitch;
    return CUDA_SUCCESS;
}

REAL_CALL(cuMemGetAddressRange_v2, CUdeviceptr *start, size_t *bytes, CUdeviceptr address);

/* An address inside an allocation denotes the whole allocation. */
static CUdeviceptr start_of(CUdeviceptr address) {
    CUdeviceptr start;
    return DRIVER(REAL(cuMemGetAddressRange_v2)(&start, NULL, address)) == CUDA_SUCCESS ? start : address;
}

HOOK_CALL(cuIpcGetMemHandle, CUipcMemHandle *handle, CUdeviceptr address) {
    CUipcMemHandle made;
    if (!handle) return DRIVER(REAL(cuIpcGetMemHandle)(handle, address));
    TRY(DRIVER(REAL(cuIpcGetMemHandle)(&made, address)));
    TRY(held_export(start_of(address), shared_name(&made, sizeof made)));
    memcpy(handle, &made, sizeof made);
    return CUDA_SUCCESS;
}

REAL_CALL(cuIpcCloseMemHandle, CUdeviceptr address);

/* Opened memory that no process of this container made. */
static CUresult opened_foreign(unsigned card, uint64_t name, CUdeviceptr address) {
    CUdeviceptr start;
    size_t bytes;
    if (DRIVER(REAL(cuMemGetAddressRange_v2)(&start, &bytes, address)) != CUDA_SUCCESS) return CUDA_SUCCESS;
    return shared_size(card, name, round_up(bytes, BLOCK_BYTES));
}

typedef CUresult open_call(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags);

static CUresult open_ipc(open_call *call, CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    const uint64_t name = shared_name(&handle, sizeof handle);
    unsigned card;
    CUcontext context;
    CUdeviceptr made;
    uint64_t size;
    if (!address || !current_card(&card, &context)) return DRIVER(call(address, handle, flags));
    TRY(shared_open(card, name, &size));
    CUresult result = DRIVER(call(&made, handle, flags));
    if (result != CUDA_SUCCESS) return shared_close(card, name), result;
    if (!size) result = opened_foreign(card, name, made);
    if (result == CUDA_SUCCESS && !shared_note(made, card, name)) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        DRIVER(REAL(cuIpcCloseMemHandle)(made));
        return shared_close(card, name), result;
    }
    *address = made;
    return CUDA_SUCCESS;
}

HOOK_CALL(cuIpcOpenMemHandle, CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    return open_ipc(REAL(cuIpcOpenMemHandle), address, handle, flags);
}

HOOK_CALL(cuIpcOpenMemHandle_v2, CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    return open_ipc(REAL(cuIpcOpenMemHandle_v2), address, handle, flags);
}

HOOK_CALL(cuIpcCloseMemHandle, CUdeviceptr address) {
    struct entry what;
    const bool known = shared_take(address, &what);
    const CUresult result = DRIVER(REAL(cuIpcCloseMemHandle)(address));
    if (known) shared_taken(&what, result == CUDA_SUCCESS);
    return result;
}
