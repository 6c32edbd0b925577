/* cuMemAlloc and its kin: memory of the current context, with an address. */
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

/* So much was reserved, and the driver gave so many bytes at the address. What goes beyond and may not be had goes
 * back; nothing of it is known to the program yet. */
static CUresult took(unsigned card, CUcontext context, uint64_t reserved, CUdeviceptr address, uint64_t bytes) {
    const struct entry what = {.key = address, .bytes = bytes, .of = (uint64_t)context, .card = (uint16_t)card};
    uint64_t charged;
    if (!held_note(HELD_MEMORY, &what, &charged)) {
        DRIVER(REAL(cuMemFree_v2)(address));
        account_end(card, reserved);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (charged > reserved) account_correct(card, charged - reserved, 0);
    account_end(card, charged > reserved ? 0 : reserved - charged);
    const CUresult result = charged > reserved ? account_exceed(card, 0) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) hook_cuMemFree_v2(address);
    return result;
}

/* A hook that takes memory of the current context; what the driver will refuse goes to it unchanged. */
#define TAKE(name, address, bytes, ...)                                                                                \
    do {                                                                                                               \
        unsigned card;                                                                                                 \
        CUcontext context;                                                                                             \
        CUdeviceptr made;                                                                                              \
        if (!address || !bytes || !current_card(&card, &context)) return DRIVER(REAL(name)(address, __VA_ARGS__));     \
        const uint64_t most = round_up(bytes, BLOCK_BYTES);                                                            \
        TRY(account_begin(card, most));                                                                                \
        const CUresult result = DRIVER(REAL(name)(&made, __VA_ARGS__));                                                \
        if (result != CUDA_SUCCESS) return account_end(card, most), result;                                            \
        TRY(took(card, context, most, made, bytes));                                                                   \
        *address = made;                                                                                               \
        return CUDA_SUCCESS;                                                                                           \
    } while (0)

HOOK_CALL(cuMemAlloc_v2, CUdeviceptr *address, size_t bytes) { TAKE(cuMemAlloc_v2, address, bytes, bytes); }

HOOK_CALL(cuMemAllocManaged, CUdeviceptr *address, size_t bytes, unsigned flags) {
    TAKE(cuMemAllocManaged, address, bytes, bytes, flags);
}

/* Rows begin at multiples of what the driver likes: 512 bytes today, asked for more where it turns out to be more. */
HOOK_CALL(cuMemAllocPitch_v2, CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element) {
    enum { LIKELY_PITCH = 512 };
    unsigned card;
    CUcontext context;
    uint64_t bytes;
    if (!address || !pitch || !width || !height || !current_card(&card, &context))
        return DRIVER(REAL(cuMemAllocPitch_v2)(address, pitch, width, height, element));
    if (__builtin_mul_overflow(round_up(width, LIKELY_PITCH), height, &bytes)) bytes = UINT64_MAX / 2;
    const uint64_t most = round_up(bytes, BLOCK_BYTES);
    CUdeviceptr made;
    size_t made_pitch;
    TRY(account_begin(card, most));
    CUresult result = DRIVER(REAL(cuMemAllocPitch_v2)(&made, &made_pitch, width, height, element));
    if (result != CUDA_SUCCESS) return account_end(card, most), result;
    TRY(took(card, context, most, made, made_pitch * height));
    *address = made;
    *pitch = made_pitch;
    return CUDA_SUCCESS;
}

REAL_CALL(cuMemGetAddressRange_v2, CUdeviceptr *start, size_t *bytes, CUdeviceptr address);

/* An address inside the memory means all of it. */
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

/* No process of this container made it. */
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
