/* Driver functions on streams, each in two forms: NULL is the legacy stream or (_ptsz) the thread's own. */
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

CALL_TWICE(cuStreamQuery, _ptsz, query(stream, per_thread), CUstream stream)

static CUresult synchronize(CUstream handle, bool per_thread) {
    struct cuda_stream *stream;
    CUresult result = stream_of(handle, per_thread, &stream);
    if (!result) result = capture_forbids_asking(stream);
    return result ? result : stream_finish(stream);
}

CALL_TWICE(cuStreamSynchronize, _ptsz, synchronize(stream, per_thread), CUstream stream)

static CUresult get_flags(CUstream handle, unsigned *flags, bool per_thread) {
    struct cuda_stream *stream;
    TRY(stream_of(handle, per_thread, &stream));
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->non_blocking ? CU_STREAM_NON_BLOCKING : 0;
    return CUDA_SUCCESS;
}

CALL_TWICE(cuStreamGetFlags, _ptsz, get_flags(stream, flags, per_thread), CUstream stream, unsigned *flags)

static CUresult get_priority(CUstream handle, int *priority, bool per_thread) {
    struct cuda_stream *stream;
    TRY(stream_of(handle, per_thread, &stream));
    if (!priority) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CALL_TWICE(cuStreamGetPriority, _ptsz, get_priority(stream, priority, per_thread), CUstream stream, int *priority)

/* Green contexts are not distinguished: the second version always returns a plain one. */
static CUresult get_context(CUstream handle, CUcontext *found, void **green, bool per_thread) {
    struct cuda_stream *stream;
    TRY(stream_of(handle, per_thread, &stream));
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *found = stream->context;
    if (green) *green = NULL;
    return CUDA_SUCCESS;
}

CALL_TWICE(cuStreamGetCtx, _ptsz, get_context(stream, found, NULL, per_thread), CUstream stream, CUcontext *found)
CALL_TWICE(cuStreamGetCtx_v2, _ptsz, get_context(stream, found, green, per_thread), CUstream stream, CUcontext *found,
           void **green)

/* Only the priority attribute has a meaning here; the others are not stored. */
