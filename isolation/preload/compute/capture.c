/* Stream captures: captured launches are not gated, and nothing that this library does disturbs a capture.
 *
 * While a stream captures, no event can be recorded in it, nor in the legacy stream if that waits for it. So before a
 * stream may capture, an event is recorded in every stream that has work; this work is metered by that event, however
 * long the capture lasts. For launches made later beside the capture, the driver is asked one by one.
 */
#include "lanes.h"

#include <string.h>

REAL_CALL(cuStreamIsCapturing, CUstream stream, int *status);

/* Streams that began a capture whose end was not seen. A capture for which there is no room counts as never ending: the
 * driver is then asked more often than necessary. Under `lifetimes`. */
enum { MOST_ORIGINS = 256 };
static struct origin {
    CUstream stream;
    CUcontext context;
    const void *thread;
} origins[MOST_ORIGINS];

/* Held while launching into a capture and while a call may end one: a launch is either captured or gated. Taken before
 * `lifetimes`. */
static struct os_lock writing;

bool is_capturing(CUstream stream) {
    int status = 0;
    if (!atomic_load_explicit(&captures, memory_order_acquire) || stream == CU_STREAM_LEGACY) return false;
    return DRIVER(REAL(cuStreamIsCapturing)(stream, &status)) == CUDA_SUCCESS && status;
}

bool capture_enter(CUstream stream) {
    if (!atomic_load_explicit(&captures, memory_order_acquire)) return false;
    os_lock(&writing);
    if (is_capturing(stream)) return true;
    os_unlock(&writing);
    return false;
}

void capture_leave(void) { os_unlock(&writing); }

/* ---- beginning -------------------------------------------------------------------------------------------------- */

static struct origin origin_of(CUstream stream) {
    struct origin origin = {stream, NULL, stream == CU_STREAM_PER_THREAD ? &lane_cache : NULL};
    unsigned card;
    current_card(&card, &origin.context);
    return origin;
}

/* Keeps `lifetimes` until capture_begun, so that the helper records no event in between. */
void capture_begins(void) {
    os_lock(&lifetimes);
    atomic_fetch_add(&captures, 1);
    gates_review();
    lanes_stand();
}

CUresult capture_begun(CUresult result, CUstream stream) {
    unsigned place = 0;
    if (result == CUDA_SUCCESS) {
        while (place < MOST_ORIGINS && origins[place].stream) place++;
        if (place < MOST_ORIGINS) origins[place] = origin_of(stream);
    } else {
        atomic_fetch_sub(&captures, 1);
    }
    lanes_void();
    os_unlock(&lifetimes);
    return result;
}

/* A stream that waits for an event of a capture becomes part of it. */
CUresult capture_join(CUstream stream, CUevent event, unsigned flags, CUresult (*call)(CUstream, CUevent, unsigned)) {
    if (!atomic_load_explicit(&captures, memory_order_acquire)) return DRIVER(call(stream, event, flags));
    KEEP_ERRNO;
    os_lock(&lifetimes);
    lanes_stand();
    const CUresult result = DRIVER(call(stream, event, flags));
    lanes_void();
    os_unlock(&lifetimes);
    return result;
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

static void ended(struct origin *origin) {
    *origin = (struct origin){0};
    atomic_fetch_sub(&captures, 1);
}

static void forget(const struct origin *which) {
    for (struct origin *origin = origins; origin < origins + MOST_ORIGINS; origin++)
        if (origin->stream == which->stream && origin->thread == which->thread &&
            (!is_default(which->stream) || origin->context == which->context))
            return ended(origin);
}

/* A failed capture ends too; a capture of another thread or stream continues. */
CUresult capture_end(CUstream stream, CUgraph *graph, CUstream named, CUresult (*call)(CUstream, CUgraph *)) {
    const struct origin origin = origin_of(named);
    KEEP_ERRNO;
    os_lock(&writing);
    const bool was = is_capturing(origin.stream);
    const CUresult result = DRIVER(call(stream, graph));
    os_lock(&lifetimes);
    if (was && !is_capturing(origin.stream)) forget(&origin);
    os_unlock(&lifetimes);
    os_unlock(&writing);
    return result;
}

/* Destroying a stream ends its capture. */
void capture_stream_ends(CUstream stream) {
    const struct origin origin = {.stream = stream};
    os_lock(&writing);
    if (!stream || is_default(stream)) return;
    os_lock(&lifetimes);
    forget(&origin);
    os_unlock(&lifetimes);
}

void capture_stream_ended(void) { os_unlock(&writing); }

void capture_context_ended(CUcontext context) {
    for (struct origin *origin = origins; origin < origins + MOST_ORIGINS; origin++)
        if (origin->stream && origin->context == context) ended(origin);
}

void captures_forget(void) {
    memset(origins, 0, sizeof origins);
    memset(&writing, 0, sizeof writing);
    atomic_store(&captures, 0);
}
