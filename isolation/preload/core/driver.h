/* The border to the driver, libcuda: calls of its real functions. hooks/hooks.h says how a hook is written.
 *
 * Before the first hook of a process is entered the driver has been looked for and every REAL of hooks.def is known, so
 * a hook may hold locks of its own while it calls them. REAL of another name asks the dynamic linker the first time:
 * no lock may be held then that a library's constructor could wait for.
 */
#pragma once

#include "driver/cuda_abi.h"
#include "hook.h"

/* For a function that is called but not hooked, or hooked in another file:
 *     REAL_CALL(cuMemPoolTrimTo, CUmemoryPool pool, size_t keep); */
#define REAL_CALL(name, ...) DECLARE_REAL(CUresult, name, __VA_ARGS__)

/* Calls of ours between these are nothing that a capture minds. Also while there is no capture: another thread may
 * begin one in the middle of what follows. */
REAL_CALL(cuThreadExchangeStreamCaptureMode, int *mode);

static inline int unnoticed_begin(void) {
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return DRIVER(REAL(cuThreadExchangeStreamCaptureMode)(&mode)) == CUDA_SUCCESS ? mode
                                                                                  : CU_STREAM_CAPTURE_MODE_RELAXED;
}

static inline void unnoticed_end(int before) {
    if (before != CU_STREAM_CAPTURE_MODE_RELAXED) DRIVER(REAL(cuThreadExchangeStreamCaptureMode)(&before));
}

/* Leaves the function with any error. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const CUresult try_result = (call);                                                                            \
        if (try_result != CUDA_SUCCESS) return try_result;                                                             \
    } while (0)
