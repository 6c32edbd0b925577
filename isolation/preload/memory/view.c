#include "view.h"

#include "memory.h"

/* In the same turn: what the broker says is charged has this very credit in it. */
bool view_of(unsigned card, struct view *view) {
    KEEP_ERRNO;
    const uint64_t deadline = os_now() + SESSION_WAIT;
    struct wire packet = {.what = WIRE_VIEW, .card = (uint16_t)card};
    *view = (struct view){0};
    if (card >= MOST_CARDS) return true;
    if (!session_enter(deadline)) return false;
    const bool answered = session_ask(&packet, session_patience(deadline));
    const uint64_t credit = account_credit(card);
    session_leave();
    if (!answered || packet.result != WIRE_OK) return answered;
    view->limit = packet.view.limit;
    view->used = packet.view.charged > credit ? packet.view.charged - credit : 0;
    return true;
}

static uint64_t least(uint64_t one, uint64_t other) { return one < other ? one : other; }

HOOK_CALL(cuMemGetInfo_v2, size_t *unused, size_t *total) {
    unsigned card;
    CUcontext context;
    size_t driver_unused, driver_total;
    struct view view;
    TRY(DRIVER(REAL(cuMemGetInfo_v2)(&driver_unused, &driver_total)));
    if (!current_card(&card, &context) || !view_of(card, &view)) return CUDA_ERROR_NOT_INITIALIZED;
    if (unused) *unused = least(view_free(&view), driver_unused);
    if (total) *total = least(view.limit, driver_total);
    return CUDA_SUCCESS;
}

/* The form of before 4.0, with 32 bits. */
HOOK_CALL(cuMemGetInfo, unsigned *unused, unsigned *total) {
    unsigned card;
    CUcontext context;
    unsigned driver_unused, driver_total;
    struct view view;
    TRY(DRIVER(REAL(cuMemGetInfo)(&driver_unused, &driver_total)));
    if (!current_card(&card, &context) || !view_of(card, &view)) return CUDA_ERROR_NOT_INITIALIZED;
    if (unused) *unused = (unsigned)least(view_free(&view), driver_unused);
    if (total) *total = (unsigned)least(view.limit, driver_total);
    return CUDA_SUCCESS;
}

HOOK_CALL(cuDeviceTotalMem_v2, size_t *bytes, CUdevice device) {
    struct view view;
    const CUresult result = DRIVER(REAL(cuDeviceTotalMem_v2)(bytes, device));
    if (result != CUDA_SUCCESS) return result;
    if (!view_of(card_of(device), &view)) return CUDA_ERROR_NOT_INITIALIZED;
    *bytes = least(view.limit, *bytes);
    return CUDA_SUCCESS;
}

HOOK_CALL(cuDeviceTotalMem, unsigned *bytes, CUdevice device) {
    struct view view;
    const CUresult result = DRIVER(REAL(cuDeviceTotalMem)(bytes, device));
    if (result != CUDA_SUCCESS) return result;
    if (!view_of(card_of(device), &view)) return CUDA_ERROR_NOT_INITIALIZED;
    *bytes = (unsigned)least(view.limit, *bytes);
    return CUDA_SUCCESS;
}

/* ---- the beginning ---------------------------------------------------------------------------------------------- */

/* No broker, no card: an error and never the whole card. */
HOOK_CALL(cuInit, unsigned flags) {
    const CUresult result = DRIVER(REAL(cuInit)(flags));
    if (result != CUDA_SUCCESS) return result;
    if (!session_start()) return CUDA_ERROR_NOT_INITIALIZED;
    session_listen();
    return CUDA_SUCCESS;
}
