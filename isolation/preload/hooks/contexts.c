/* Contexts: room is requested before one is created, and what it held is forgotten when it is gone. */
#include "../memory/growth.h"
#include "../memory/reserves.h"
#include "../migration/migration.h"
#include "hooks.h"

REAL_CALL(cuDevicePrimaryCtxGetState, CUdevice device, unsigned *flags, int *active);
REAL_CALL(cuCtxFromGreenCtx, CUcontext *context, CUgreenCtx green);
REAL_CALL(cuGreenCtxDestroy, CUgreenCtx green);

/* ---- creation --------------------------------------------------------------------------------------------------- */

static CUresult made(unsigned card, CUresult result, const CUcontext *context) {
    account_tell(card, result == CUDA_SUCCESS ? WIRE_CONTEXT_MADE : WIRE_CONTEXT_FAILED);
    if (result == CUDA_SUCCESS) gate_reached(card);
    if (result == CUDA_SUCCESS && context) context_noted(card, *context), lanes_context_made(card, *context);
    return result;
}

/* All forms of cuCtxCreate: `call` creates it. Invalid arguments are rejected by the driver, after the request for
 * room. */
#define MAKE(device, context, call)                                                                                    \
    do {                                                                                                               \
        const unsigned card = card_of(device);                                                                         \
        TRY(account_context(card));                                                                                    \
        return made(card, DRIVER(call), context);                                                                      \
    } while (0)

static bool is_device(CUdevice device) {
    unsigned flags;
    int active;
    return DRIVER(REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active)) == CUDA_SUCCESS;
}

HOOK_CALL(cuCtxCreate, CUcontext *context, unsigned flags, CUdevice device) {
    if (!context || !is_device(device)) return DRIVER(REAL(cuCtxCreate)(context, flags, device));
    MAKE(device, context, REAL(cuCtxCreate)(context, flags, device));
}

HOOK_CALL(cuCtxCreate_v2, CUcontext *context, unsigned flags, CUdevice device) {
    if (!context || !is_device(device)) return DRIVER(REAL(cuCtxCreate_v2)(context, flags, device));
    MAKE(device, context, REAL(cuCtxCreate_v2)(context, flags, device));
}

HOOK_CALL(cuCtxCreate_v3, CUcontext *context, void *affinity, int count, unsigned flags, CUdevice device) {
    if (!context || !is_device(device)) return DRIVER(REAL(cuCtxCreate_v3)(context, affinity, count, flags, device));
    MAKE(device, context, REAL(cuCtxCreate_v3)(context, affinity, count, flags, device));
}

HOOK_CALL(cuCtxCreate_v4, CUcontext *context, void *params, unsigned flags, CUdevice device) {
    if (!context || !is_device(device)) return DRIVER(REAL(cuCtxCreate_v4)(context, params, flags, device));
    MAKE(device, context, REAL(cuCtxCreate_v4)(context, params, flags, device));
}

/* The OpenGL forms from before CUDA 5, and those for VDPAU. */
HOOK_CALL(cuGLCtxCreate, CUcontext *context, unsigned flags, CUdevice device) {
    if (!context || !is_device(device)) return DRIVER(REAL(cuGLCtxCreate)(context, flags, device));
    MAKE(device, context, REAL(cuGLCtxCreate)(context, flags, device));
}

HOOK_CALL(cuGLCtxCreate_v2, CUcontext *context, unsigned flags, CUdevice device) {
    if (!context || !is_device(device)) return DRIVER(REAL(cuGLCtxCreate_v2)(context, flags, device));
    MAKE(device, context, REAL(cuGLCtxCreate_v2)(context, flags, device));
}

HOOK_CALL(cuVDPAUCtxCreate, CUcontext *context, unsigned flags, CUdevice device, uint32_t screen, void *functions) {
    if (!context || !is_device(device))
        return DRIVER(REAL(cuVDPAUCtxCreate)(context, flags, device, screen, functions));
    MAKE(device, context, REAL(cuVDPAUCtxCreate)(context, flags, device, screen, functions));
}

HOOK_CALL(cuVDPAUCtxCreate_v2, CUcontext *context, unsigned flags, CUdevice device, uint32_t screen, void *functions) {
    if (!context || !is_device(device))
        return DRIVER(REAL(cuVDPAUCtxCreate_v2)(context, flags, device, screen, functions));
    MAKE(device, context, REAL(cuVDPAUCtxCreate_v2)(context, flags, device, screen, functions));
}

/* Whether the driver reports the device's primary context as active; true if it cannot tell. */
static bool primary_is_there(CUdevice device) {
    unsigned flags;
    int active;
    return DRIVER(REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active)) != CUDA_SUCCESS || active;
}

enum { MOST_DEVICES = 64 };
static _Atomic(CUcontext) primaries[MOST_DEVICES]; /* a device's primary context keeps its handle when it is
                                                    * recreated */

static void note_primary(CUdevice device, CUcontext context) {
    if (device >= 0 && device < MOST_DEVICES) atomic_store(&primaries[device], context);
}

HOOK_CALL(cuDevicePrimaryCtxRetain, CUcontext *context, CUdevice device) {
    CUresult result;
    if (!context || primary_is_there(device)) {
        result = DRIVER(REAL(cuDevicePrimaryCtxRetain)(context, device));
        gate_reached(card_of(device));
    } else {
        const unsigned card = card_of(device);
        TRY(account_context(card));
        result = made(card, DRIVER(REAL(cuDevicePrimaryCtxRetain)(context, device)), context);
    }
    if (result == CUDA_SUCCESS && context) note_primary(device, *context);
    return result;
}

/* A green context lives in the primary context and creates it if necessary. */
HOOK_CALL(cuGreenCtxCreate, CUgreenCtx *context, CUdevResourceDesc resources, CUdevice device, unsigned flags) {
    if (!context || primary_is_there(device)) return DRIVER(REAL(cuGreenCtxCreate)(context, resources, device, flags));
    MAKE(device, NULL, REAL(cuGreenCtxCreate)(context, resources, device, flags));
}

/* A green context's context lives in the primary context, and takes almost nothing itself. */
HOOK_CALL(cuCtxFromGreenCtx, CUcontext *context, CUgreenCtx green) {
    const CUresult result = DRIVER(REAL(cuCtxFromGreenCtx)(context, green));
    if (result == CUDA_SUCCESS && context) context_noted(NO_CARD, *context);
    return result;
}

/* ---- the current context ---------------------------------------------------------------------------------------- */

HOOK_CALL(cuCtxSetCurrent, CUcontext context) {
    lanes_switch();
    return DRIVER(REAL(cuCtxSetCurrent)(context));
}

HOOK_CALL(cuCtxPushCurrent, CUcontext context) {
    lanes_switch();
    return DRIVER(REAL(cuCtxPushCurrent)(context));
}

HOOK_CALL(cuCtxPushCurrent_v2, CUcontext context) {
    lanes_switch();
    return DRIVER(REAL(cuCtxPushCurrent_v2)(context));
}

HOOK_CALL(cuCtxPopCurrent, CUcontext *context) {
    lanes_switch();
    return DRIVER(REAL(cuCtxPopCurrent)(context));
}

HOOK_CALL(cuCtxPopCurrent_v2, CUcontext *context) {
    lanes_switch();
    return DRIVER(REAL(cuCtxPopCurrent_v2)(context));
}

/* ---- destruction ------------------------------------------------------------------------------------------------ */

/* `since`: a moment before the driver was called. What another thread has allocated after the context was recreated, at
 * any address, is newer. */
static void gone(unsigned card, CUcontext context, uint32_t since) {
    context_forgotten(context);
    locals_forgotten(context);
    if (context) {
        regions_context_gone(context, since);
        held_context_gone(context, since);
    }
    if (card >= MOST_CARDS) return;
    virtual_check(card);
    reserves_reread(card);
}

/* In flight until the records are removed: meanwhile less is held than the used amount says. */
static CUresult end(unsigned card, CUresult result, CUcontext context, uint32_t since, bool is_gone) {
    if (result == CUDA_SUCCESS && is_gone) gone(card, context, since);
    account_end_free(card, 0);
    if (result == CUDA_SUCCESS && is_gone) account_tell(card, 0);
    return result;
}

static unsigned card_of_context(CUcontext context) {
    CUdevice device;
    return device_of_context(context, &device) ? card_of(device) : NO_CARD;
}

static CUresult destroy(CUcontext context, CUresult (*call)(CUcontext)) {
    const unsigned card = card_of_context(context);
    const uint32_t since = held_now();
    account_begin_free(card);
    lanes_context_ends(context);
    const CUresult result = DRIVER(call(context));
    lanes_context_ended(context, result == CUDA_SUCCESS);
    return end(card, result, context, since, true);
}

HOOK_CALL(cuCtxDestroy, CUcontext context) { return destroy(context, REAL(cuCtxDestroy)); }

HOOK_CALL(cuCtxDestroy_v2, CUcontext context) { return destroy(context, REAL(cuCtxDestroy_v2)); }

/* The last detach destroys the context. */
HOOK_CALL(cuCtxDetach, CUcontext context) {
    const unsigned card = card_of_context(context);
    const uint32_t since = held_now();
    account_begin_free(card);
    lanes_context_ends(context);
    const CUresult result = DRIVER(REAL(cuCtxDetach)(context));
    const bool is_gone = result == CUDA_SUCCESS && card_of_context(context) == NO_CARD;
    lanes_context_ended(context, is_gone);
    return end(card, result, context, since, is_gone);
}

static CUresult end_primary(CUdevice device, CUresult (*call)(CUdevice), bool surely) {
    if (device < 0 || device >= MOST_DEVICES) return DRIVER(call(device));
    const unsigned card = card_of(device);
    const uint32_t since = held_now();
    const CUcontext context = atomic_load(&primaries[device]);
    account_begin_free(card);
    lanes_context_ends(context);
    const CUresult result = DRIVER(call(device));
    const bool is_gone = surely || !primary_is_there(device);
    lanes_context_ended(context, result == CUDA_SUCCESS && is_gone);
    return end(card, result, context, since, is_gone);
}

HOOK_CALL(cuDevicePrimaryCtxRelease, CUdevice device) {
    return end_primary(device, REAL(cuDevicePrimaryCtxRelease), false);
}

HOOK_CALL(cuDevicePrimaryCtxRelease_v2, CUdevice device) {
    return end_primary(device, REAL(cuDevicePrimaryCtxRelease_v2), false);
}

HOOK_CALL(cuDevicePrimaryCtxReset, CUdevice device) { return end_primary(device, REAL(cuDevicePrimaryCtxReset), true); }

HOOK_CALL(cuDevicePrimaryCtxReset_v2, CUdevice device) {
    return end_primary(device, REAL(cuDevicePrimaryCtxReset_v2), true);
}

/* The primary context that it lives in exists for it, and may be destroyed with it. */
static CUresult end_green(CUgreenCtx green, CUcontext context, CUdevice device) {
    const unsigned card = card_of(device);
    const uint32_t since = held_now();
    const CUcontext primary = device < MOST_DEVICES ? atomic_load(&primaries[device]) : NULL;
    account_begin_free(card);
    lanes_context_ends(context);
    lanes_context_ends(primary);
    const CUresult result = DRIVER(REAL(cuGreenCtxDestroy)(green));
    const bool is_gone = !primary_is_there(device);
    lanes_context_ended(primary, result == CUDA_SUCCESS && is_gone);
    lanes_context_ended(context, result == CUDA_SUCCESS);
    if (result == CUDA_SUCCESS && is_gone) held_context_gone(context, since);
    return end(card, result, primary, since, is_gone);
}

HOOK_CALL(cuGreenCtxDestroy, CUgreenCtx green) {
    CUcontext context;
    CUdevice device;
    if (!green || DRIVER(REAL(cuCtxFromGreenCtx)(&context, green)) != CUDA_SUCCESS ||
        !device_of_context(context, &device))
        return DRIVER(REAL(cuGreenCtxDestroy)(green));
    return end_green(green, context, device);
}
