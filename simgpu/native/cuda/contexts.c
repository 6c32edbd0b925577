/* Lifetime of contexts, and their settings: flags and limits are stored; cache and bank configurations do not affect
 * time here. */
#include "streams.h"

#include <stdlib.h>

pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static u64 last_id;  /* under contexts_lock */

struct cuda_context *context_new(struct device *device, bool is_primary) {
    struct cuda_context *context = calloc(1, sizeof *context);
    if (!context) return NULL;
    context->magic = CONTEXT_MAGIC;
    context->device = device;
    context->is_primary = is_primary;
    context->id = ++last_id;
    context->locals = LOCALS_AT_FIRST;
    return context;
}

static CUresult ask(enum sim_ask what, struct device *device, struct sim_reply *reply) {
    struct sim_request request = {.ask = what, .card = device->card};
    return driver_result(sim_call(driver_node(), &request, reply, NULL));
}

CUresult context_begin(struct cuda_context *context, u32 flags) {
    struct device *device = context->device;
    struct sim_reply reply;
    TRY(ask(SIM_ATTACH, device, &reply));
    device->row = (int)reply.row;
    device_sticks(device); /* discards what was injected for an earlier process in this row */
    device->contexts++;
    device_advance(device);
    CUresult result = stream_new(context, 0, 0, &context->legacy);
    if (result) {
        device->contexts--;
        ask(SIM_DETACH, device, &reply);
        return result;
    }
    context->legacy->legacy = true;
    context->legacy->id = 1;
    context->flags = flags;
    atomic_store(&context->references, 1);
    return CUDA_SUCCESS;
}

/* Work in the streams continues in the card's time and is not waited for. */
void context_end(struct cuda_context *context) {
    struct device *device = context->device;
    struct sim_reply reply;
    atomic_store(&context->references, 0);
    memory_context_gone(context);
    growth_context_gone(context);
    while (context->streams) stream_drop(context->streams);
    context->blocking_tail = context->dropped_tail = 0;
    if (!--device->contexts) {
        pthread_mutex_lock(&device->advancing);
        device->row = -1;
        device->lag = device->received = 0;
        pthread_mutex_unlock(&device->advancing);
    }
    ask(SIM_DETACH, device, &reply);
}

static CUresult create(CUcontext *made, unsigned flags, CUdevice ordinal) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    TRY(device_fault(device));
    if (!made || flags & ~(unsigned)CU_CTX_FLAGS_MASK) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&contexts_lock);
    struct cuda_context *context = context_new(device, false);
    CUresult result = context ? context_begin(context, flags) : CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_unlock(&contexts_lock);
    TRY(result);
    TRY(context_push(context));
    *made = context;
    return CUDA_SUCCESS;
}

CALL(cuCtxCreate_v2, CUcontext *made, unsigned flags, CUdevice ordinal) { return create(made, flags, ordinal); }

/* Limits on the SMs of a context belong to MPS, which is not simulated. */
CALL(cuCtxCreate_v3, CUcontext *made, const void *affinity, int count, unsigned flags, CUdevice ordinal) {
    (void)affinity;
    return count ? CUDA_ERROR_NOT_SUPPORTED : create(made, flags, ordinal);
}

CALL(cuCtxCreate_v4, CUcontext *made, const void *params, unsigned flags, CUdevice ordinal) {
    if (params && (((void *const *)params)[0] || ((void *const *)params)[2])) return CUDA_ERROR_NOT_SUPPORTED;
    return create(made, flags, ordinal);
}

/* For rendering by OpenGL and VDPAU, which is not simulated. */
CALL(cuGLCtxCreate_v2, CUcontext *made, unsigned flags, CUdevice ordinal) { return create(made, flags, ordinal); }

CALL(cuVDPAUCtxCreate_v2, CUcontext *made, unsigned flags, CUdevice ordinal, u32 screen, const void *functions) {
    (void)screen;
    return functions ? create(made, flags, ordinal) : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuCtxDestroy_v2, CUcontext handle) {
    TRY(driver_ready());
    if (!handle || handle->magic != CONTEXT_MAGIC) return CUDA_ERROR_INVALID_CONTEXT;
    if (handle->is_primary) return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&contexts_lock);
    bool alive = handle->references;
    if (alive) context_end(handle);
    pthread_mutex_unlock(&contexts_lock);
    if (!alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    struct thread *here = thread_here();
    if (here->depth && here->stack[here->depth - 1] == handle) here->depth--;
    return CUDA_SUCCESS;
}

CALL(cuCtxAttach, CUcontext *found, unsigned flags) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!found || flags || context->is_primary) return CUDA_ERROR_INVALID_VALUE;
    atomic_fetch_add(&context->references, 1);
    *found = context;
    return CUDA_SUCCESS;
}

/* The last detach destroys it. */
CALL(cuCtxDetach, CUcontext handle) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (context != handle || context->is_primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (atomic_load(&context->references) == 1) return cuCtxDestroy_v2(handle);
    atomic_fetch_sub(&context->references, 1);
    return CUDA_SUCCESS;
}

/* Waits for all streams of the context. */
static CUresult synchronize(CUcontext handle) {
    struct cuda_context *context;
    CUresult result = context_of(handle, &context);
    if (!result) result = capture_forbids_unsafe();
    if (!result) result = capture_forbids_waiting(context);
    if (!result) result = context_settle(context);
    return result ? result : device_wait(context->device, context_tail(context));
}

CALL(cuCtxSynchronize, void) { return synchronize(NULL); }
CALL(cuCtxSynchronize_v2, CUcontext handle) { return synchronize(handle); }

/* ---- settings ---------------------------------------------------------------------------------------------------- */

CALL(cuCtxGetApiVersion, CUcontext handle, unsigned *version) {
    struct cuda_context *context;
    TRY(context_of(handle, &context));
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
}

CALL(cuCtxGetFlags, unsigned *flags) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

/* The driver's defaults, by number: stack, printf, malloc heap, sync depth, pending launches, L2 fetch, L2 persisting.
 */
enum { STACK };
static const size_t limits[CONTEXT_LIMITS] = {LOCALS_AT_FIRST, 1 << 20, 8 << 20, 2, 2048, 64, 0};

static CUresult limit_of(int limit, struct cuda_context **context) {
    TRY(context_current(context));
    return limit >= 0 && limit < CONTEXT_LIMITS ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

CALL(cuCtxGetLimit, size_t *value, int limit) {
    struct cuda_context *context;
    TRY(limit_of(limit, &context));
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    *value = context->limits[limit] ? context->limits[limit] : limits[limit];
    return CUDA_SUCCESS;
}

CALL(cuCtxSetLimit, int limit, size_t value) {
    struct cuda_context *context;
    CUresult result = limit_of(limit, &context);
    if (!result && limit == STACK) result = locals_grow(context, value);
    if (!result) context->limits[limit] = value;
    return result;
}
