/* Host functions in streams: they run on the helper thread, and later work of the stream waits. */
#include "streams.h"

#include <stdlib.h>

struct callback {
    CUstream stream;
    CUstreamCallback told;
    CUhostFn plain;
    void *data;
};

/* After a device failure a plain host function is not called; a callback is, with the error. */
static CUresult call(void *argument, CUresult status) {
    struct callback *callback = argument;
    thread_here()->serves = true;
    if (callback->told)
        callback->told(callback->stream, status, callback->data);
    else if (!status)
        callback->plain(callback->data);
    thread_here()->serves = false;
    free(callback);
    return CUDA_SUCCESS;
}

static CUresult hold(struct cuda_stream *stream, const struct callback *callback) {
    struct callback *kept = malloc(sizeof *kept);
    if (!kept) return CUDA_ERROR_OUT_OF_MEMORY;
    *kept = *callback;
    CUresult result = stream_hold(stream, &(struct held){.kind = HELD_CALL, .call = call, .argument = kept});
    if (result) free(kept);
    return result;
}

CUresult stream_call(struct cuda_stream *stream, CUhostFn function, void *data) {
    return hold(stream, &(struct callback){.stream = stream, .plain = function, .data = data});
}

static CUresult launch_host(CUstream handle, CUhostFn function, void *data, bool per_thread) {
    struct cuda_stream *stream;
    bool capturing;
    TRY(stream_of(handle, per_thread, &stream));
    TRY(stream_begin(stream, &capturing));
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    return capturing ? capture_host(stream, function, data) : stream_call(stream, function, data);
}

CALL_TWICE(cuLaunchHostFunc, _ptsz, launch_host(stream, function, data, per_thread), CUstream stream, CUhostFn function,
           void *data)

/* The second version adds how the host waits, which only affects CPU use. */
CALL_TWICE(cuLaunchHostFunc_v2, _ptsz, ((void)mode, launch_host(stream, function, data, per_thread)), CUstream stream,
           CUhostFn function, void *data, unsigned mode)

static CUresult add_callback(CUstream handle, CUstreamCallback function, void *data, unsigned flags, bool per_thread) {
    struct cuda_stream *stream;
    TRY(stream_of(handle, per_thread, &stream));
    TRY(capture_forbids_asking(stream));
    if (!function || flags) return CUDA_ERROR_INVALID_VALUE;
    return hold(stream, &(struct callback){.stream = handle, .told = function, .data = data});
}

CALL_TWICE(cuStreamAddCallback, _ptsz, add_callback(stream, function, data, flags, per_thread), CUstream stream,
           CUstreamCallback function, void *data, unsigned flags)
