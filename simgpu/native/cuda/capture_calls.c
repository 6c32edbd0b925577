/* Driver functions on captures. */
#include "capture.h"

#include <stdlib.h>

static CUresult begin(CUstream handle, CUstreamCaptureMode mode, struct cuda_graph *into, const struct nodes *before,
                      bool per_thread) {
    struct cuda_stream *stream;
    struct cuda_graph *graph = into;
    TRY(stream_of(handle, per_thread, &stream));
    if (mode > CAPTURE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    HOLD(captures_lock);
    if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (!into) TRY(graph_new(&graph));
    struct capture *capture = capture_new(stream, mode, graph);
    if (!capture) return CUDA_ERROR_OUT_OF_MEMORY;
    capture->owns_graph = !into;
    return nodes_add_all(&stream->captured, before);
}

static const struct nodes none;

/* The first version has no modes: it is global. */
CALL_TWICE(cuStreamBeginCapture, _ptsz, begin(stream, CAPTURE_GLOBAL, NULL, &none, per_thread), CUstream stream)
CALL_TWICE(cuStreamBeginCapture_v2, _ptsz, begin(stream, mode, NULL, &none, per_thread), CUstream stream,
           CUstreamCaptureMode mode)

static CUresult begin_to(CUstream stream, CUgraph handle, const CUgraphNode *before, size_t count,
                         CUstreamCaptureMode mode, bool per_thread) {
    struct cuda_graph *graph;
    TRY(graph_of(handle, &graph));
    if (count && !before) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!nodes_has(&graph->nodes, before[i])) return CUDA_ERROR_INVALID_VALUE;
    return begin(stream, mode, graph, &(struct nodes){(struct cuda_node **)before, count}, per_thread);
}

CALL_TWICE(cuStreamBeginCaptureToGraph, _ptsz, ((void)data, begin_to(stream, graph, before, count, mode, per_thread)),
           CUstream stream, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *data, size_t count,
           CUstreamCaptureMode mode)

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Marks the dependencies of marked nodes. Nodes usually follow their dependencies, so one pass is enough. */
static void mark_before(const struct nodes *all, bool *seen) {
    for (bool again = true; again;) {
        again = false;
        for (size_t i = all->count; i-- > 0;) {
            const struct nodes *before = &all->node[i]->before;
            for (size_t j = 0; seen[i] && j < before->count; j++) {
                size_t index = before->node[j]->index;
                again |= !seen[index] && index > i;
                seen[index] = true;
            }
        }
    }
}

/* Everything captured in other streams must precede the origin's last captured node. */
static CUresult joined(const struct capture *capture) {
    const struct nodes *all = &capture->graph->nodes, *last = &capture->origin->captured;
    bool *seen = calloc(all->count + 1, sizeof *seen);
    if (!seen) return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < all->count; i++) all->node[i]->index = i;
    for (size_t i = 0; i < last->count; i++) seen[last->node[i]->index] = true;
    mark_before(all, seen);
    bool missing = false;
    for (const struct cuda_stream *stream = capture->members; stream; stream = stream->next_member)
        for (size_t i = 0; i < stream->captured.count; i++) missing |= !seen[stream->captured.node[i]->index];
    free(seen);
    return missing ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_SUCCESS;
}

static CUresult may_end(const struct capture *capture, const struct cuda_stream *stream) {
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CAPTURE_RELAXED && capture->thread != thread_here())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    return CUDA_SUCCESS;
}

static CUresult end(CUstream handle, CUgraph *made, bool per_thread) {
    struct cuda_stream *stream;
    TRY(stream_of(handle, per_thread, &stream));
    if (!made) return CUDA_ERROR_INVALID_VALUE;
    HOLD(captures_lock);
    struct capture *capture = stream->capture;
    CUresult result = may_end(capture, stream);
    if (!result) {
        result = capture->status == CAPTURE_INVALIDATED ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : joined(capture);
        if (result && capture->owns_graph) graph_drop(capture->graph);
        *made = result ? NULL : capture->graph;
        capture_end(capture);
    }
    return result;
}

CALL_TWICE(cuStreamEndCapture, _ptsz, end(stream, made, per_thread), CUstream stream, CUgraph *made)

/* ---- queries; they invalidate no capture ------------------------------------------------------------------------- */

struct info {
    CUstreamCaptureStatus status;
    u64 id;
    struct cuda_graph *graph;
    const struct nodes *before;
};

static CUresult info_of(CUstream handle, bool per_thread, struct info *info) {
    struct cuda_stream *stream;
    TRY(stream_of(handle, per_thread, &stream));
    if (stream_is_implicit(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *info = (struct info){.before = &none};
    HOLD(captures_lock);
    const struct capture *capture = stream->capture;
    if (capture) *info = (struct info){capture->status, capture->id, capture->graph, &stream->captured};
    return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status, bool per_thread) {
    struct info info;
    TRY(info_of(stream, per_thread, &info));
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    *status = info.status;
    return CUDA_SUCCESS;
}

CALL_TWICE(cuStreamIsCapturing, _ptsz, is_capturing(stream, status, per_thread), CUstream stream,
           CUstreamCaptureStatus *status)

/* Only requested outputs are set, and those beyond the status only while the capture is active. */
struct answers {
    CUstreamCaptureStatus *status;
    unsigned long long *id;
    CUgraph *graph;
    const CUgraphNode **before;
    const CUgraphEdgeData **data;
    size_t *count;
};

static CUresult tell(CUstream stream, const struct answers *to, bool per_thread) {
    static const CUgraphEdgeData plain[256];
    struct info info;
    TRY(info_of(stream, per_thread, &info));
    if (!to->status) return CUDA_ERROR_INVALID_VALUE;
    *to->status = info.status;
    if (info.status != CAPTURE_ACTIVE) return CUDA_SUCCESS;
    if (to->id) *to->id = info.id;
    if (to->graph) *to->graph = info.graph;
    if (to->before) *to->before = info.before->node;
    if (to->data) *to->data = info.before->count <= sizeof plain / sizeof *plain ? plain : NULL;
    if (to->count) *to->count = info.before->count;
    return CUDA_SUCCESS;
}

CALL_TWICE(cuStreamGetCaptureInfo, _ptsz, tell(stream, &(struct answers){.status = status, .id = id}, per_thread),
           CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id)
CALL_TWICE(cuStreamGetCaptureInfo_v2, _ptsz,
           tell(stream, &(struct answers){status, id, graph, before, NULL, count}, per_thread), CUstream stream,
           CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *graph, const CUgraphNode **before,
           size_t *count)
CALL_TWICE(cuStreamGetCaptureInfo_v3, _ptsz,
           tell(stream, &(struct answers){status, id, graph, before, data, count}, per_thread), CUstream stream,
           CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *graph, const CUgraphNode **before,
           const CUgraphEdgeData **data, size_t *count)

CALL(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode *mode) {
    TRY(driver_ready());
    if (!mode || *mode > CAPTURE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_here()->mode;
    thread_here()->mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
