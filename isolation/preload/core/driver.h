/* Interface to the driver, libcuda: calls to its real functions. hooks/hooks.h describes how a hook is written.
 *
 * By the time the first hook of a process runs, the driver has been located and every REAL of hooks.def is resolved, so
 * a hook may hold locks of its own while calling them. The first REAL of any other name goes through the dynamic
 * linker: the caller must not hold a lock then that a library's constructor could wait for.
 */
#pragma once

#include "driver/cuda_abi.h"
#include "hook.h"

/* Declares a function that is called but not hooked, or hooked in another file:
 *     REAL_CALL(cuMemPoolTrimTo, CUmemoryPool pool, size_t keep); */
#define REAL_CALL(name, ...) DECLARE_REAL(CUresult, name, __VA_ARGS__)

/* Enclose calls of ours that a stream capture must tolerate: they switch the thread to relaxed mode. Needed even when
 * no capture is under way, since another thread may begin one at any moment. */
REAL_CALL(cuThreadExchangeStreamCaptureMode, int *mode);

static inline int unnoticed_begin(void) {
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return DRIVER(REAL(cuThreadExchangeStreamCaptureMode)(&mode)) == CUDA_SUCCESS ? mode
                                                                                  : CU_STREAM_CAPTURE_MODE_RELAXED;
}

static inline void unnoticed_end(int before) {
    if (before != CU_STREAM_CAPTURE_MODE_RELAXED) DRIVER(REAL(cuThreadExchangeStreamCaptureMode)(&before));
}

/* Returns from the function on any error. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const CUresult try_result = (call);                                                                            \
        if (try_result != CUDA_SUCCESS) return try_result;                                                             \
    } while (0)
