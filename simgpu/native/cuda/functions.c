/* Functions and kernels: what programs ask of them. Numbers of registers and the like are plausible, not measured. */
#include "functions.h"

#include <string.h>

enum {
    THREADS_PER_BLOCK = 1024,
    BLOCKS_PER_SM = 32,
    SHARED_STATIC = 48 << 10,
    SHARED_MOST = 227 << 10,
    REGISTERS = 32,
};

CUresult function_of(CUfunction handle, struct function **found) {
    CUresult ready = driver_ready();
    if (ready) return ready;
    if (!handle || handle->magic != FUNCTION_MAGIC) return CUDA_ERROR_INVALID_HANDLE;
    *found = handle;
    return CUDA_SUCCESS;
}

/* The first parameter out of the buffer form: pairs of a key and a value, ended by 0; key 1 is the buffer. */
static const void *buffer_of(void *const *extra) {
    for (; extra && *extra; extra += 2)
        if ((uintptr_t)*extra == 1) return extra[1];
    return NULL;
}

CUresult function_duration(const struct function *function, void *const *params, void *const *extra, u64 *duration_ns) {
    *duration_ns = function->duration_ns;
    if (!function->from_argument) return CUDA_SUCCESS;
    const void *first = params ? params[0] : buffer_of(extra);
    if (!first) return CUDA_ERROR_INVALID_VALUE;
    memcpy(duration_ns, first, sizeof *duration_ns);
    return CUDA_SUCCESS;
}

static unsigned most_shared(const struct function *function) {
    if (!function) return SHARED_MOST;
    return function->max_dynamic_shared ? (unsigned)function->max_dynamic_shared : SHARED_STATIC;
}

CUresult shape_check(const struct function *function, const struct shape *shape) {
    const unsigned *grid = shape->grid, *block = shape->block;
    for (int i = 0; i < 3; i++)
        if (!grid[i] || !block[i]) return CUDA_ERROR_INVALID_VALUE;
    if (grid[0] > INT32_MAX || grid[1] > UINT16_MAX || grid[2] > UINT16_MAX) return CUDA_ERROR_INVALID_VALUE;
    if (block[0] > THREADS_PER_BLOCK || block[1] > THREADS_PER_BLOCK || block[2] > 64) return CUDA_ERROR_INVALID_VALUE;
    u64 threads = (u64)block[0] * block[1] * block[2];
    const bool fits = threads <= THREADS_PER_BLOCK && shape->shared_bytes <= most_shared(function);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

enum {
    MAX_THREADS,
    SHARED,
    CONSTANT,
    LOCAL,
    NUMBER_OF_REGISTERS,
    PTX,
    BINARY,
    CACHE,
    MAX_DYNAMIC_SHARED,
    CARVEOUT,
    COUNT = 18
};

static CUresult get(int *value, int attribute, CUfunction handle) {
    struct function *function;
    CUresult result = function_of(handle, &function);
    if (result) return result;
    if (!value || attribute < 0 || attribute >= COUNT) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case MAX_THREADS: *value = THREADS_PER_BLOCK; break;
    case NUMBER_OF_REGISTERS: *value = REGISTERS; break;
    case PTX:
    case BINARY: *value = 90; break;
    case MAX_DYNAMIC_SHARED: *value = (int)most_shared(function); break;
    case CARVEOUT: *value = function->carveout ? function->carveout : -1; break;
    default: *value = 0;
    }
    return CUDA_SUCCESS;
}

static CUresult set(CUfunction handle, int attribute, int value) {
    struct function *function;
    CUresult result = function_of(handle, &function);
    if (result) return result;
    if (attribute == MAX_DYNAMIC_SHARED && value >= 0 && value <= SHARED_MOST)
        function->max_dynamic_shared = value;
    else if (attribute == CARVEOUT && value >= -1 && value <= 100)
        function->carveout = value;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CALL(cuFuncGetAttribute, int *value, int attribute, CUfunction function) { return get(value, attribute, function); }
CALL(cuFuncSetAttribute, CUfunction function, int attribute, int value) { return set(function, attribute, value); }
CALL(cuKernelGetAttribute, int *value, int attribute, CUkernel kernel, CUdevice device) {
    (void)device;
    return get(value, attribute, kernel);
}
CALL(cuKernelSetAttribute, int attribute, int value, CUkernel kernel, CUdevice device) {
    (void)device;
    return set(kernel, attribute, value);
}

/* How a cache is split has no effect on time here. */
static CUresult cache(CUfunction handle, int split) {
    struct function *function;
    CUresult result = function_of(handle, &function);
    return result ? result : split < 0 || split > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CALL(cuFuncSetCacheConfig, CUfunction function, int split) { return cache(function, split); }
CALL(cuFuncSetSharedMemConfig, CUfunction function, int split) { return cache(function, split); }
CALL(cuKernelSetCacheConfig, CUkernel kernel, int split, CUdevice device) {
    (void)device;
    return cache(kernel, split);
}

static CUresult name(const char **text, CUfunction handle) {
    struct function *function;
    CUresult result = function_of(handle, &function);
    if (result) return result;
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = function->name;
    return CUDA_SUCCESS;
}

CALL(cuFuncGetName, const char **text, CUfunction function) { return name(text, function); }
CALL(cuKernelGetName, const char **text, CUkernel kernel) { return name(text, kernel); }

static CUresult image(struct image **found, CUfunction handle) {
    struct function *function;
    CUresult result = function_of(handle, &function);
    if (result) return result;
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *found = function->image;
    return CUDA_SUCCESS;
}

CALL(cuFuncGetModule, CUmodule *module, CUfunction function) { return image(module, function); }
CALL(cuKernelGetLibrary, CUlibrary *library, CUkernel kernel) { return image(library, kernel); }

CALL(cuKernelGetFunction, CUfunction *found, CUkernel kernel) {
    struct context *context;
    struct function *function;
    CUresult result = context_current(&context);
    if (!result) result = function_of(kernel, &function);
    if (result) return result;
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *found = function;
    return CUDA_SUCCESS;
}

CALL(cuFuncIsLoaded, int *state, CUfunction handle) {
    struct context *context;
    struct function *function;
    CUresult result = context_current(&context);
    if (!result) result = function_of(handle, &function);
    if (result) return result;
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    *state = (function->image->loaded >> context->device->ordinal) & 1;
    return CUDA_SUCCESS;
}

CALL(cuFuncLoad, CUfunction handle) {
    struct context *context;
    struct function *function;
    CUresult result = context_current(&context);
    if (!result) result = function_of(handle, &function);
    return result ? result : function_load(function, context->device);
}

/* ---- occupancy: by threads alone --------------------------------------------------------------------------------- */

static CUresult occupancy(int *blocks, CUfunction handle, int block, size_t shared) {
    struct context *context;
    struct function *function;
    CUresult result = context_current(&context);
    if (!result) result = function_of(handle, &function);
    if (result) return result;
    if (!blocks || block <= 0) return CUDA_ERROR_INVALID_VALUE;
    int most = block > THREADS_PER_BLOCK ? 0 : (int)context->device->about->model.threads_per_sm / block;
    if (shared && (size_t)most > SHARED_MOST / shared) most = (int)(SHARED_MOST / shared);
    *blocks = most < BLOCKS_PER_SM ? most : BLOCKS_PER_SM;
    return CUDA_SUCCESS;
}

CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, CUfunction function, int block, size_t shared) {
    return occupancy(blocks, function, block, shared);
}
CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *blocks, CUfunction function, int block, size_t shared,
     unsigned flags) {
    (void)flags;
    return occupancy(blocks, function, block, shared);
}

static CUresult best_block(int *least_grid, int *block, CUfunction handle, int limit) {
    struct context *context;
    struct function *function;
    CUresult result = context_current(&context);
    if (!result) result = function_of(handle, &function);
    if (result) return result;
    if (!least_grid || !block) return CUDA_ERROR_INVALID_VALUE;
    const struct sim_model *model = &context->device->about->model;
    *block = limit > 0 && limit < THREADS_PER_BLOCK ? limit : THREADS_PER_BLOCK;
    *least_grid = (int)(model->sms * (model->threads_per_sm / (unsigned)*block));
    return CUDA_SUCCESS;
}

CALL(cuOccupancyMaxPotentialBlockSize, int *least_grid, int *block, CUfunction function, size_t (*shared_of)(int),
     size_t shared, int limit) {
    (void)shared_of, (void)shared;
    return best_block(least_grid, block, function, limit);
}
CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, int *least_grid, int *block, CUfunction function,
     size_t (*shared_of)(int), size_t shared, int limit, unsigned flags) {
    (void)shared_of, (void)shared, (void)flags;
    return best_block(least_grid, block, function, limit);
}

CALL(cuOccupancyAvailableDynamicSMemPerBlock, size_t *bytes, CUfunction handle, int blocks, int block) {
    struct function *function;
    CUresult result = function_of(handle, &function);
    if (result) return result;
    if (!bytes || blocks <= 0 || block <= 0) return CUDA_ERROR_INVALID_VALUE;
    *bytes = SHARED_MOST / (size_t)blocks;
    return CUDA_SUCCESS;
}
