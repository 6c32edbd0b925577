/* The driver's functions on streams. Each stands twice: with NULL as the legacy stream, and (_ptsz) as the thread's
 * own. */
#include "streams.h"

#include <string.h>

enum { LEAST_PRIORITY = 0, GREATEST_PRIORITY = -5 };

static CUresult create(CUstream *made, unsigned flags, int priority) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!made || flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    if (priority > LEAST_PRIORITY) priority = LEAST_PRIORITY;
    if (priority < GREATEST_PRIORITY) priority = GREATEST_PRIORITY;
    return stream_new(context, flags, priority, made);
}

CALL(cuStreamCreate, CUstream *made, unsigned flags) { return create(made, flags, 0); }
CALL(cuStreamCreateWithPriority, CUstream *made, unsigned flags, int priority) { return create(made, flags, priority); }

CALL(cuCtxGetStreamPriorityRange, int *least, int *greatest) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (least) *least = LEAST_PRIORITY;
    if (greatest) *greatest = GREATEST_PRIORITY;
    return CUDA_SUCCESS;
}

CALL(cuStreamDestroy_v2, CUstream handle) {
    struct cuda_stream *stream;
    if ((uintptr_t)handle <= 2) return driver_ready() ? driver_ready() : CUDA_ERROR_INVALID_HANDLE;
    TRY(stream_of(handle, false, &stream));
    if (stream->legacy) return CUDA_ERROR_INVALID_HANDLE;
    if (stream_capturing(stream)) capture_leave(stream);
    stream_drop(stream);
    return CUDA_SUCCESS;
}

CALL(cuStreamDestroy, CUstream handle) { return cuStreamDestroy_v2(handle); }

static CUresult query(CUstream handle, bool per_thread) {
    struct cuda_stream *stream;
    CUresult result = stream_of(handle, per_thread, &stream);
    if (!result) result = capture_forbids_asking(stream);
    if (!result) result = stream_idle(stream);
    if (!result) device_act(stream->context->device);
    return result;
}

CALL(cuStreamQuery, CUstream stream) { return query(stream, false); }
CALL(cuStreamQuery_ptsz, CUstream stream) { return query(stream, true); }

static CUresult synchronize(CUstream handle, bool per_thread) {
    struct cuda_stream *stream;
    CUresult result = stream_of(handle, per_thread, &stream);
    if (!result) result = capture_forbids_asking(stream);
    return result ? result : stream_finish(stream);
}

CALL(cuStreamSynchronize, CUstream stream) { return synchronize(stream, false); }
CALL(cuStreamSynchronize_ptsz, CUstream stream) { return synchronize(stream, true); }

static CUresult get_flags(CUstream handle, unsigned *flags, bool per_thread) {
    struct cuda_stream *stream;
    TRY(stream_of(handle, per_thread, &stream));
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->non_blocking ? CU_STREAM_NON_BLOCKING : 0;
    return CUDA_SUCCESS;
}

CALL(cuStreamGetFlags, CUstream stream, unsigned *flags) { return get_flags(stream, flags, false); }
CALL(cuStreamGetFlags_ptsz, CUstream stream, unsigned *flags) { return get_flags(stream, flags, true); }

static CUresult get_priority(CUstream handle, int *priority, bool per_thread) {
    struct cuda_stream *stream;
    TRY(stream_of(handle, per_thread, &stream));
    if (!priority) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CALL(cuStreamGetPriority, CUstream stream, int *priority) { return get_priority(stream, priority, false); }
CALL(cuStreamGetPriority_ptsz, CUstream stream, int *priority) { return get_priority(stream, priority, true); }

/* A green context is not told from others: the second version's answer is always a plain one. */
static CUresult get_context(CUstream handle, CUcontext *found, void **green, bool per_thread) {
    struct cuda_stream *stream;
    TRY(stream_of(handle, per_thread, &stream));
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *found = stream->context;
    if (green) *green = NULL;
    return CUDA_SUCCESS;
}

CALL(cuStreamGetCtx, CUstream stream, CUcontext *found) { return get_context(stream, found, NULL, false); }
CALL(cuStreamGetCtx_ptsz, CUstream stream, CUcontext *found) { return get_context(stream, found, NULL, true); }
CALL(cuStreamGetCtx_v2, CUstream stream, CUcontext *found, void **green) {
    return get_context(stream, found, green, false);
}
CALL(cuStreamGetCtx_v2_ptsz, CUstream stream, CUcontext *found, void **green) {
    return get_context(stream, found, green, true);
}

/* Of the attributes only the priority means anything here; the others are not kept. */
