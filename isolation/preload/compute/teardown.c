/* Streams and contexts that are destroyed: the work of their lanes stays tracked as long as it may run, then the lanes
 * are free for others. Under `lifetimes`. */
#include "lanes.h"

static void drop(struct lane *lane, bool with_context) {
    window_drop(lane, with_context);
    lane_release(lane);
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

void lane_ends(CUstream stream) {
    KEEP_ERRNO;
    if (!stream || is_default(stream)) return;
    os_lock(&lifetimes);
    struct lane *lane = lane_known(stream);
    if (lane) {
        lanes_void();
        if (atomic_load(&lane->gate->blind)) lane_suspect(lane);
        if (lane->drained == atomic_load(&lane->launched))
            drop(lane, false);
        else if (lane_record(lane) == LOST)
            drop(lane, true);
        else
            atomic_store(&lane->gone, true);
    }
    os_unlock(&lifetimes);
}

void lane_free_if_gone(struct lane *lane) {
    if (atomic_load(&lane->gone)) drop(lane, false);
}

/* Its events belong to a context that may be gone too. */
void lane_free_lost(struct lane *lane) {
    lanes_void();
    drop(lane, true);
}

/* ---- contexts --------------------------------------------------------------------------------------------------- */

static void each_of_all(void (*each)(struct lane *lane, void *context), CUcontext context) {
    for (unsigned card = 0; card < session_cards(); card++) lanes_each(card, each, context);
}

static void ends(struct lane *lane, void *context) {
    if (lane->context == context) atomic_store(&lane->is_ending, true);
}

static void goes_on(struct lane *lane, void *context) {
    if (lane->context == context) atomic_store(&lane->is_ending, false);
}

/* Not those that another thread made since: the driver may have given it the same handle. */
static void drop_ended(struct lane *lane, void *context) {
    if (lane->context == context && atomic_load(&lane->is_ending)) drop(lane, true);
}

void lanes_context_ends(CUcontext context) {
    if (!context) return;
    os_lock(&lifetimes);
    each_of_all(ends, context);
    lanes_void();
    os_unlock(&lifetimes);
}

void lanes_context_ended(CUcontext context, bool gone) {
    if (!context) return;
    lanes_switch();
    os_lock(&lifetimes);
    each_of_all(gone ? drop_ended : goes_on, context);
    if (gone) capture_context_ended(context);
    os_unlock(&lifetimes);
}
