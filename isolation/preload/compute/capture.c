/* Captures: launches that are written down are not gated, and nothing that we do disturbs one. */
#include "compute.h"

REAL_CALL(cuStreamIsCapturing, CUstream stream, int *status);
REAL_CALL(cuThreadExchangeStreamCaptureMode, int *mode);

_Atomic uint32_t captures;

bool is_capturing(CUstream stream) {
    int status = 0;
    if (!atomic_load_explicit(&captures, memory_order_acquire) || stream == CU_STREAM_LEGACY) return false;
    return DRIVER(REAL(cuStreamIsCapturing)(stream, &status)) == CUDA_SUCCESS && status;
}

/* The legacy stream waits for streams that capture, which is an error in them. */
bool may_record(CUstream stream) {
    if (!atomic_load_explicit(&captures, memory_order_acquire)) return true;
    return stream != CU_STREAM_LEGACY && !is_capturing(stream);
}

int unnoticed_begin(void) {
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (atomic_load_explicit(&captures, memory_order_acquire) == 0) return mode;
    return DRIVER(REAL(cuThreadExchangeStreamCaptureMode)(&mode)) == CUDA_SUCCESS ? mode
                                                                                  : CU_STREAM_CAPTURE_MODE_RELAXED;
}

void unnoticed_end(int before) {
    if (before != CU_STREAM_CAPTURE_MODE_RELAXED) DRIVER(REAL(cuThreadExchangeStreamCaptureMode)(&before));
}

/* ---- beginning and end ------------------------------------------------------------------------------------------ */

/* Known before it begins; under the desk, so that the helper does not record anything in between. */
static void begins(void) {
    KEEP_ERRNO;
    os_lock(&desk);
    atomic_fetch_add(&captures, 1);
    lanes_void();
    os_unlock(&desk);
}

static void ended(void) {
    uint32_t before = atomic_load(&captures);
    while (before && !atomic_compare_exchange_weak(&captures, &before, before - 1)) continue;
}

static CUresult begun(CUresult result) {
    if (result != CUDA_SUCCESS) ended();
    return result;
}

#define BEGIN(name, ...)                                                                                               \
    do {                                                                                                               \
        begins();                                                                                                      \
        return begun(DRIVER(REAL(name)(__VA_ARGS__)));                                                                 \
    } while (0)

HOOK_CALL(cuStreamBeginCapture, CUstream stream) { BEGIN(cuStreamBeginCapture, stream); }
HOOK_CALL(cuStreamBeginCapture_ptsz, CUstream stream) { BEGIN(cuStreamBeginCapture_ptsz, stream); }
HOOK_CALL(cuStreamBeginCapture_v2, CUstream stream, int mode) { BEGIN(cuStreamBeginCapture_v2, stream, mode); }
HOOK_CALL(cuStreamBeginCapture_v2_ptsz, CUstream stream, int mode) {
    BEGIN(cuStreamBeginCapture_v2_ptsz, stream, mode);
}

HOOK_CALL(cuStreamBeginCaptureToGraph, CUstream stream, CUgraph graph, const CUgraphNode *after, const void *edges,
          size_t count, int mode) {
    BEGIN(cuStreamBeginCaptureToGraph, stream, graph, after, edges, count, mode);
}

HOOK_CALL(cuStreamBeginCaptureToGraph_ptsz, CUstream stream, CUgraph graph, const CUgraphNode *after, const void *edges,
          size_t count, int mode) {
    BEGIN(cuStreamBeginCaptureToGraph_ptsz, stream, graph, after, edges, count, mode);
}

/* `mismatch` is called for what is no longer as it was. */
typedef int CUgraphRecaptureCallback(void *about, void *node, const void *before, const void *now);

HOOK_CALL(cuStreamBeginRecaptureToGraph, CUstream stream, int mode, CUgraph graph, CUgraphRecaptureCallback *mismatch,
          void *about) {
    BEGIN(cuStreamBeginRecaptureToGraph, stream, mode, graph, mismatch, about);
}

HOOK_CALL(cuStreamBeginRecaptureToGraph_ptsz, CUstream stream, int mode, CUgraph graph,
          CUgraphRecaptureCallback *mismatch, void *about) {
    BEGIN(cuStreamBeginRecaptureToGraph_ptsz, stream, mode, graph, mismatch, about);
}

/* A capture that failed ends too; one that is of another thread or stream goes on. */
static CUresult end(CUstream stream, CUgraph *graph, CUresult (*call)(CUstream, CUgraph *), bool per_thread) {
    const CUstream named = stream ? stream : per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    const bool was = is_capturing(named);
    const CUresult result = DRIVER(call(stream, graph));
    if (was && !is_capturing(named)) ended();
    return result;
}

HOOK_CALL(cuStreamEndCapture, CUstream stream, CUgraph *graph) {
    return end(stream, graph, REAL(cuStreamEndCapture), false);
}

HOOK_CALL(cuStreamEndCapture_ptsz, CUstream stream, CUgraph *graph) {
    return end(stream, graph, REAL(cuStreamEndCapture_ptsz), true);
}
