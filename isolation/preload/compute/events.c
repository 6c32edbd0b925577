/* Events that cover all work given to a lane: when one is reached, none of that work runs any more. Under `lifetimes`.
 */
#include "lanes.h"

REAL_CALL(cuStreamGetCtx, CUstream stream, CUcontext *context);
REAL_CALL(cuStreamIsCapturing, CUstream stream, int *status);
REAL_CALL(cuEventCreate, CUevent *event, unsigned flags);
REAL_CALL(cuEventRecord, CUevent event, CUstream stream);

/* A destroyed stream gets no more work. */
void lane_suspect(struct lane *lane) {
    if (atomic_load(&lane->used) && !atomic_load(&lane->gone))
        lane->drained = lane->recorded = atomic_load(&lane->launched) - 1;
}

static void suspect(struct lane *lane, void *unused) {
    (void)unused;
    lane_suspect(lane);
}

void lanes_suspect(unsigned card) { lanes_each(card, suspect, NULL); }

/* For the legacy stream the driver reports an error if a stream that it waits for captures. */
bool may_record(CUstream stream) {
    int status = 0;
    if (!atomic_load_explicit(&captures, memory_order_acquire)) return true;
    return DRIVER(REAL(cuStreamIsCapturing)(stream, &status)) == CUDA_SUCCESS && !status;
}

/* A per-thread default stream can be named only by its own thread, but the legacy stream waits for it. */
static CUstream nameable(const struct lane *lane) {
    return lane->stream == CU_STREAM_PER_THREAD ? CU_STREAM_LEGACY : lane->stream;
}

static CUresult record(struct lane *lane) {
    if (!may_record(nameable(lane))) return CUDA_ERROR_NOT_READY;
    if (!lane->drain) TRY(DRIVER(REAL(cuEventCreate)(&lane->drain, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC)));
    return DRIVER(REAL(cuEventRecord)(lane->drain, nameable(lane)));
}

/* Captures and lack of memory are temporary. Any other error means that the stream or context no longer runs
 * anything. */
static bool will_pass(const struct lane *lane, CUresult result) {
    CUcontext context;
    if (result == CUDA_ERROR_NOT_READY || result == CUDA_ERROR_OUT_OF_MEMORY) return true;
    if (result >= CUDA_ERROR_CAPTURE_FIRST && result <= CUDA_ERROR_CAPTURE_LAST) return true;
    if (result != CUDA_ERROR_INVALID_HANDLE) return false;
    return is_default(lane->stream) || DRIVER(REAL(cuStreamGetCtx)(lane->stream, &context)) == CUDA_SUCCESS;
}

enum standing lane_record(struct lane *lane) {
    const uint32_t launched = atomic_load_explicit(&lane->launched, memory_order_acquire);
    if (lane->recorded == launched) return STANDS;
    if (atomic_load(&lane->gone) || atomic_load(&lane->is_ending)) return NOT_YET;
    if (!lane_context_push(lane)) return LOST;
    const CUresult result = record(lane);
    const bool is_lost = result != CUDA_SUCCESS && !will_pass(lane, result);
    lane_context_pop();
    if (result == CUDA_SUCCESS) lane->recorded = launched;
    return result == CUDA_SUCCESS ? STANDS : is_lost ? LOST : NOT_YET;
}

static void stand(struct lane *lane, void *unused) {
    (void)unused;
    lane_record(lane);
}

void lanes_stand(void) {
    const int mode = unnoticed_begin();
    for (unsigned card = 0; card < session_cards(); card++) {
        if (atomic_exchange(&gates[card].blind, false)) lanes_suspect(card);
        lanes_each(card, stand, NULL);
    }
    unnoticed_end(mode);
}
