/* Streams: creation, destruction, and capture (compute/capture.c). */
#include "hooks.h"

static CUresult made(CUresult result, const CUstream *stream) {
    if (result == CUDA_SUCCESS && stream) lane_made(*stream);
    return result;
}

HOOK_CALL(cuStreamCreate, CUstream *stream, unsigned flags) {
    return made(DRIVER(REAL(cuStreamCreate)(stream, flags)), stream);
}

HOOK_CALL(cuStreamCreateWithPriority, CUstream *stream, unsigned flags, int priority) {
    return made(DRIVER(REAL(cuStreamCreateWithPriority)(stream, flags, priority)), stream);
}

HOOK_CALL(cuGreenCtxStreamCreate, CUstream *stream, CUgreenCtx context, unsigned flags, int priority) {
    return made(DRIVER(REAL(cuGreenCtxStreamCreate)(stream, context, flags, priority)), stream);
}

static CUresult destroy(CUstream stream, CUresult (*call)(CUstream)) {
    capture_stream_ends(stream);
    lane_ends(stream);
    const CUresult result = DRIVER(call(stream));
    capture_stream_ended();
    return result;
}

HOOK_CALL(cuStreamDestroy, CUstream stream) { return destroy(stream, REAL(cuStreamDestroy)); }

HOOK_CALL(cuStreamDestroy_v2, CUstream stream) { return destroy(stream, REAL(cuStreamDestroy_v2)); }

/* ---- captures --------------------------------------------------------------------------------------------------- */

#define BEGIN(per_thread, name, stream, ...)                                                                           \
    do {                                                                                                               \
        KEEP_ERRNO;                                                                                                    \
        capture_begins();                                                                                              \
        return capture_begun(DRIVER(REAL(name)(stream, ##__VA_ARGS__)), stream_named(stream, per_thread));             \
    } while (0)

HOOK_CALL(cuStreamBeginCapture, CUstream stream) { BEGIN(false, cuStreamBeginCapture, stream); }
HOOK_CALL(cuStreamBeginCapture_ptsz, CUstream stream) { BEGIN(true, cuStreamBeginCapture_ptsz, stream); }
HOOK_CALL(cuStreamBeginCapture_v2, CUstream stream, int mode) { BEGIN(false, cuStreamBeginCapture_v2, stream, mode); }
HOOK_CALL(cuStreamBeginCapture_v2_ptsz, CUstream stream, int mode) {
    BEGIN(true, cuStreamBeginCapture_v2_ptsz, stream, mode);
}

HOOK_CALL(cuStreamBeginCaptureToGraph, CUstream stream, CUgraph graph, const CUgraphNode *after, const void *edges,
          size_t count, int mode) {
    BEGIN(false, cuStreamBeginCaptureToGraph, stream, graph, after, edges, count, mode);
}

HOOK_CALL(cuStreamBeginCaptureToGraph_ptsz, CUstream stream, CUgraph graph, const CUgraphNode *after, const void *edges,
          size_t count, int mode) {
    BEGIN(true, cuStreamBeginCaptureToGraph_ptsz, stream, graph, after, edges, count, mode);
}

/* The recapture callback, called for a node that has changed. */
typedef int CUgraphRecaptureCallback(void *about, void *node, const void *before, const void *now);

HOOK_CALL(cuStreamBeginRecaptureToGraph, CUstream stream, int mode, CUgraph graph, CUgraphRecaptureCallback *mismatch,
          void *about) {
    BEGIN(false, cuStreamBeginRecaptureToGraph, stream, mode, graph, mismatch, about);
}

HOOK_CALL(cuStreamBeginRecaptureToGraph_ptsz, CUstream stream, int mode, CUgraph graph,
          CUgraphRecaptureCallback *mismatch, void *about) {
    BEGIN(true, cuStreamBeginRecaptureToGraph_ptsz, stream, mode, graph, mismatch, about);
}

HOOK_CALL(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned flags) {
    return capture_join(stream, event, flags, REAL(cuStreamWaitEvent));
}

HOOK_CALL(cuStreamWaitEvent_ptsz, CUstream stream, CUevent event, unsigned flags) {
    return capture_join(stream, event, flags, REAL(cuStreamWaitEvent_ptsz));
}

HOOK_CALL(cuStreamEndCapture, CUstream stream, CUgraph *graph) {
    return capture_end(stream, graph, stream_named(stream, false), REAL(cuStreamEndCapture));
}

HOOK_CALL(cuStreamEndCapture_ptsz, CUstream stream, CUgraph *graph) {
    return capture_end(stream, graph, stream_named(stream, true), REAL(cuStreamEndCapture_ptsz));
}
