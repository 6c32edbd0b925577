/* What the container sees of a card, through CUDA and through libnvidia-ml.so.1. */
#include "../core/partage_core.h"
#include "../memory/growth.h"
#include "hooks.h"

struct view {
    uint64_t limit;
    uint64_t used; /* by all its processes, including contexts; for this process without unused lent memory */
};

/* False: the broker is unavailable. A card that was not granted has a limit of 0. The credit is read under the same
 * turn, since the broker's charged amount includes it. */
static bool view_of(unsigned card, struct view *view) {
    KEEP_ERRNO;
    struct wire packet = {.what = WIRE_VIEW, .card = (uint16_t)card};
    *view = (struct view){0};
    if (card >= MOST_CARDS) return true;
    packet.flags = growth_came(card) ? WIRE_GREW : 0;
    if (!account_enter()) return false;
    const bool answered = account_ask_in_turn(&packet);
    const uint64_t credit = account_credit(card);
    account_leave_turn();
    if (!answered || packet.result != WIRE_OK) return answered;
    view->limit = packet.view.limit;
    view->used = packet.view.charged > credit ? packet.view.charged - credit : 0;
    return true;
}

static uint64_t unused_of(const struct view *view) { return view->used < view->limit ? view->limit - view->used : 0; }

static uint64_t least(uint64_t one, uint64_t other) { return one < other ? one : other; }

HOOK_CALL(cuMemGetInfo_v2, size_t *unused, size_t *total) {
    unsigned card;
    CUcontext context;
    size_t driver_unused, driver_total;
    struct view view;
    TRY(DRIVER(REAL(cuMemGetInfo_v2)(&driver_unused, &driver_total)));
    if (!current_card(&card, &context) || !view_of(card, &view)) return CUDA_ERROR_NOT_INITIALIZED;
    if (unused) *unused = least(unused_of(&view), driver_unused);
    if (total) *total = least(view.limit, driver_total);
    return CUDA_SUCCESS;
}

/* The 32-bit form from before 4.0. */
HOOK_CALL(cuMemGetInfo, unsigned *unused, unsigned *total) {
    unsigned card;
    CUcontext context;
    unsigned driver_unused, driver_total;
    struct view view;
    TRY(DRIVER(REAL(cuMemGetInfo)(&driver_unused, &driver_total)));
    if (!current_card(&card, &context) || !view_of(card, &view)) return CUDA_ERROR_NOT_INITIALIZED;
    if (unused) *unused = (unsigned)least(unused_of(&view), driver_unused);
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

/* ---- initialization --------------------------------------------------------------------------------------------- */

/* Without a broker there is no card: an error, never the whole card. */
HOOK_CALL(cuInit, unsigned flags) {
    const CUresult result = DRIVER(REAL(cuInit)(flags));
    if (result != CUDA_SUCCESS) return result;
    if (!session_start()) return CUDA_ERROR_NOT_INITIALIZED;
    session_listen();
    return CUDA_SUCCESS;
}

/* ---- for libnvidia-ml.so.1 -------------------------------------------------------------------------------------- */

static bool view(unsigned card, uint64_t *limit, uint64_t *used) {
    struct view seen;
    if (!view_of(card, &seen)) return false;
    *limit = seen.limit;
    *used = seen.used;
    return true;
}

/* Holding the turn: one packet of processes, from index `first` on. Returns their total number, or -1. */
static int next_processes(unsigned card, unsigned first, struct wire *packet, uint64_t deadline) {
    *packet = (struct wire){.what = WIRE_PROCESSES_OF, .card = (uint16_t)card};
    packet->words[0] = first;
    if (!session_ask(packet, deadline)) return -1;
    return packet->result == WIRE_OK && packet->flags <= INT32_MAX ? (int)packet->flags : 0;
}

static int all_processes(unsigned card, struct partage_process *list, unsigned room, uint64_t deadline) {
    unsigned count = 0;
    int total;
    do {
        struct wire packet;
        total = next_processes(card, count, &packet, deadline);
        for (int n = 0; n < WIRE_PROCESSES && (int)count < total; n++, count++)
            if (count < room)
                list[count] = (struct partage_process){packet.processes[n].pid, packet.processes[n].bytes};
    } while (count < room && (int)count < total);
    return total;
}

static int processes(unsigned card, struct partage_process *list, unsigned room) {
    KEEP_ERRNO;
    const uint64_t deadline = os_now() + SESSION_WAIT;
    if (card >= MOST_CARDS) return 0;
    if (!session_enter(deadline)) return -1;
    const int total = all_processes(card, list, room, session_patience(deadline));
    account_leave_turn();
    return total;
}

EXPORT const struct partage_core partage_core = {
    .bytes = sizeof(struct partage_core),
    .start = session_start,
    .card_of = session_card_of,
    .view = view,
    .processes = processes,
};
