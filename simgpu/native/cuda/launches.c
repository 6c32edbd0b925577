/* Kernel launches, in all forms of the API's history. */
#include "functions.h"

#include <stdlib.h>
#include <string.h>

/* Whether launches return only when they are done, as CUDA_LAUNCH_BLOCKING requests. */
static bool blocking(void) {
    static _Atomic int asked; /* 1 + the setting */
    int answer = atomic_load_explicit(&asked, memory_order_relaxed);
    if (!answer) {
        const char *value = getenv("CUDA_LAUNCH_BLOCKING");
        answer = 1 + (value && atoi(value) != 0);
        atomic_store_explicit(&asked, answer, memory_order_relaxed);
    }
    return answer == 2;
}

/* The hot path of the library: no system call except the clock, no lock except the stream's. */
static CUresult launch(CUfunction handle, const struct shape *shape, CUstream in, void *const *params,
                       void *const *extra, bool per_thread) {
    struct cuda_stream *stream;
    bool capturing;
    u64 duration_ns;
    TRY(stream_of(in, per_thread, &stream));
    if (!handle || handle->magic != FUNCTION_MAGIC) return CUDA_ERROR_INVALID_HANDLE;
    struct cuda_function *function = handle;
    TRY(shape_check(function, shape));
    if (function->image->context && function->image->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    if (params && extra) return CUDA_ERROR_INVALID_VALUE;
    TRY(function_duration(function, params, extra, &duration_ns));
    TRY(stream_begin(stream, &capturing));
    if (capturing) return capture_kernel(stream, function, shape, duration_ns);
    TRY(function_load(function, stream->context));
    if (function->touches) {
        u64 waits_ns;
        TRY(managed_faults(stream->context->device, &waits_ns));
        duration_ns += waits_ns;
    }
    if (function->meets) return stream_meet(stream, params);
    CUresult result = stream_enqueue(stream, device_sticks(stream->context->device) ? SIM_NEVER : duration_ns, NULL);
    return result || !blocking() ? result : stream_finish(stream);
}

#define SHAPE(gx, gy, gz, bx, by, bz, shared) (&(struct shape){{gx, gy, gz}, {bx, by, bz}, shared})

CALL_TWICE(cuLaunchKernel, _ptsz, launch(f, SHAPE(gx, gy, gz, bx, by, bz, shared), stream, params, extra, per_thread),
           CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
           CUstream stream, void **params, void **extra)

/* Attributes change how a kernel runs, not how long it takes here; only the cooperative one can make a launch fail. */
enum { ATTRIBUTE_COOPERATIVE = 2 };

/* All blocks of a cooperative launch must fit on the card at once. */
static CUresult fits_at_once(CUstream in, bool per_thread, const struct shape *shape) {
    struct cuda_stream *stream;
    TRY(stream_of(in, per_thread, &stream));
    TRY(shape_check(NULL, shape));
    const struct sim_model *model = &stream->context->device->about->model;
    unsigned threads = shape->block[0] * shape->block[1] * shape->block[2];
    u64 blocks = (u64)shape->grid[0] * shape->grid[1] * shape->grid[2];
    u64 most = (u64)model->sms * (model->threads_per_sm / threads);
    return blocks > most ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

static CUresult launch_with(const CUlaunchConfig *config, CUfunction f, void **params, void **extra, bool per_thread) {
    TRY(driver_ready());
    if (!config || (config->attribute_count && !config->attributes)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->attribute_count; i++)
        if (config->attributes[i].id == ATTRIBUTE_COOPERATIVE && config->attributes[i].value[0])
            TRY(fits_at_once(config->stream, per_thread, &config->shape));
    return launch(f, &config->shape, config->stream, params, extra, per_thread);
}

CALL_TWICE(cuLaunchKernelEx, _ptsz, launch_with(config, f, params, extra, per_thread), const CUlaunchConfig *config,
           CUfunction f, void **params, void **extra)

static CUresult launch_together(CUfunction f, const struct shape *shape, CUstream stream, void **params,
                                bool per_thread) {
    TRY(fits_at_once(stream, per_thread, shape));
    return launch(f, shape, stream, params, NULL, per_thread);
}

CALL_TWICE(cuLaunchCooperativeKernel, _ptsz,
           launch_together(f, SHAPE(gx, gy, gz, bx, by, bz, shared), stream, params, per_thread), CUfunction f,
           unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
           CUstream stream, void **params)

CALL(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *each, unsigned count, unsigned flags) {
    TRY(driver_ready());
    if (!each || !count || flags > 3) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        TRY(launch_together(each[i].function, &each[i].shape, each[i].stream, each[i].params, false));
    return CUDA_SUCCESS;
}

/* ---- API before CUDA 4: the function keeps its shape and parameters ---------------------------------------------- */

CALL(cuFuncSetBlockShape, CUfunction handle, int x, int y, int z) {
    struct cuda_function *function;
    TRY(function_of(handle, &function));
    struct shape shape = {{1, 1, 1}, {(unsigned)x, (unsigned)y, (unsigned)z}, 0};
    CUresult result = shape_check(function, &shape);
    if (!result) memcpy(function->block, shape.block, sizeof function->block);
    return result;
}

CALL(cuParamSetv, CUfunction handle, int offset, const void *value, unsigned bytes) {
    struct cuda_function *function;
    TRY(function_of(handle, &function));
    size_t size = sizeof function->params;
    if (!value || offset < 0 || (size_t)offset > size || bytes > size - (size_t)offset) return CUDA_ERROR_INVALID_VALUE;
    memcpy(function->params + offset, value, bytes);
    return CUDA_SUCCESS;
}

static CUresult launch_grid(CUfunction handle, int width, int height, CUstream stream) {
    struct cuda_function *function;
    TRY(function_of(handle, &function));
    struct shape shape = {{(unsigned)width, (unsigned)height, 1}, {0}, function->shared_bytes};
    memcpy(shape.block, function->block, sizeof shape.block);
    return launch(function, &shape, stream, (void *[]){function->params}, NULL, false);
}

CALL(cuLaunch, CUfunction f) { return launch_grid(f, 1, 1, NULL); }
CALL(cuLaunchGrid, CUfunction f, int width, int height) { return launch_grid(f, width, height, NULL); }
CALL(cuLaunchGridAsync, CUfunction f, int width, int height, CUstream stream) {
    return launch_grid(f, width, height, stream);
}
