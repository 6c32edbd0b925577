/* Streams and contexts as they come and go. */
#include "compute.h"

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

/* ---- the current context ---------------------------------------------------------------------------------------- */

HOOK_CALL(cuCtxSetCurrent, CUcontext context) {
    lanes_switch();
    return DRIVER(REAL(cuCtxSetCurrent)(context));
}

HOOK_CALL(cuCtxPushCurrent, CUcontext context) {
    lanes_switch();
    return DRIVER(REAL(cuCtxPushCurrent)(context));
}

HOOK_CALL(cuCtxPushCurrent_v2, CUcontext context) {
    lanes_switch();
    return DRIVER(REAL(cuCtxPushCurrent_v2)(context));
}

HOOK_CALL(cuCtxPopCurrent, CUcontext *context) {
    lanes_switch();
    return DRIVER(REAL(cuCtxPopCurrent)(context));
}

HOOK_CALL(cuCtxPopCurrent_v2, CUcontext *context) {
    lanes_switch();
    return DRIVER(REAL(cuCtxPopCurrent_v2)(context));
}
