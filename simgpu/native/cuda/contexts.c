/* Contexts: whose memory and streams a call means. */
#include "streams.h"

#include <stdlib.h>
#include <string.h>

pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static u64 last_id;  /* under contexts_lock */

/* The static model costs a program that loads this library late nothing but these bytes, and calls no function. */
static _Thread_local struct thread here __attribute__((tls_model("initial-exec")));
static pthread_key_t at_exit;
static pthread_once_t at_exit_once = PTHREAD_ONCE_INIT;

struct thread *thread_here(void) { return &here; }

static void drop_own_streams(void *thread) {
    if (!driver_ready()) thread_drop_streams(thread);
}

static void make_key(void) { pthread_key_create(&at_exit, drop_own_streams); }

void thread_will_exit(void) {
    pthread_once(&at_exit_once, make_key);
    pthread_setspecific(at_exit, &here);
}

/* ---- lives ------------------------------------------------------------------------------------------------------- */

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
    device_sticks(device); /* what befell an earlier process in this row is over */
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

/* What is in the streams goes on in the card's time and is not waited for. */
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

CUresult context_of(CUcontext handle, struct cuda_context **found) {
    if (!handle) return context_current(found);
    TRY(driver_ready());
    if (handle->magic != CONTEXT_MAGIC) return CUDA_ERROR_INVALID_CONTEXT;
    if (!handle->references) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *found = handle;
    return CUDA_SUCCESS;
}

CUresult context_current(struct cuda_context **found) {
    struct cuda_context *context = here.depth ? here.stack[here.depth - 1] : NULL;
    if (!context) {
        CUresult ready = driver_ready();
        return ready ? ready : CUDA_ERROR_INVALID_CONTEXT;
    }
    CUresult fault = device_fault(context->device);
    if (fault) return fault;
    if (!atomic_load_explicit(&context->references, memory_order_relaxed)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *found = context;
    return CUDA_SUCCESS;
}

/* ---- the calling thread's stack ---------------------------------------------------------------------------------- */

static CUresult push(struct cuda_context *context) {
    if (here.depth == sizeof here.stack / sizeof *here.stack) return CUDA_ERROR_OUT_OF_MEMORY;
    here.stack[here.depth++] = context;
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext *made, unsigned flags, CUdevice ordinal, u32 version) {
    struct device *device;
    TRY(device_of(ordinal, &device));
    TRY(device_fault(device));
    if (!made || flags & ~(unsigned)CU_CTX_FLAGS_MASK) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&contexts_lock);
    struct cuda_context *context = context_new(device, false);
    CUresult result = context ? context_begin(context, flags) : CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_unlock(&contexts_lock);
    TRY(result);
    TRY(push(context));
    context->version = version;
    *made = context;
    return CUDA_SUCCESS;
}

CALL(cuCtxCreate_v2, CUcontext *made, unsigned flags, CUdevice ordinal) { return create(made, flags, ordinal, 3020); }

/* Limits on the SMs that a context may use are MPS's, which isn't simulated. */
CALL(cuCtxCreate_v3, CUcontext *made, const void *affinity, int count, unsigned flags, CUdevice ordinal) {
    (void)affinity;
    return count ? CUDA_ERROR_NOT_SUPPORTED : create(made, flags, ordinal, 3020);
}

CALL(cuCtxCreate_v4, CUcontext *made, const void *params, unsigned flags, CUdevice ordinal) {
    if (params && (((void *const *)params)[0] || ((void *const *)params)[2])) return CUDA_ERROR_NOT_SUPPORTED;
    return create(made, flags, ordinal, 3020);
}

/* For what OpenGL and VDPAU draw, of which there is nothing here. */
CALL(cuGLCtxCreate_v2, CUcontext *made, unsigned flags, CUdevice ordinal) { return create(made, flags, ordinal, 3020); }

CALL(cuVDPAUCtxCreate_v2, CUcontext *made, unsigned flags, CUdevice ordinal, u32 screen, const void *functions) {
    (void)screen;
    return functions ? create(made, flags, ordinal, 3020) : CUDA_ERROR_INVALID_VALUE;
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
    if (here.depth && here.stack[here.depth - 1] == handle) here.depth--;
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

/* Who detaches last destroys it. */
CALL(cuCtxDetach, CUcontext handle) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (context != handle || context->is_primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (atomic_load(&context->references) == 1) return cuCtxDestroy_v2(handle);
    atomic_fetch_sub(&context->references, 1);
    return CUDA_SUCCESS;
}

CALL(cuCtxPushCurrent_v2, CUcontext handle) {
    struct cuda_context *context;
    if (!handle) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = context_of(handle, &context);
    return result ? result : push(context);
}

CALL(cuCtxPopCurrent_v2, CUcontext *popped) {
    TRY(driver_ready());
    if (!here.depth) return CUDA_ERROR_INVALID_CONTEXT;
    here.depth--;
    if (popped) *popped = here.stack[here.depth];
    return CUDA_SUCCESS;
}

/* Replaces the top of the stack; NULL takes it away. */
CALL(cuCtxSetCurrent, CUcontext handle) {
    struct cuda_context *context = NULL;
    TRY(handle ? context_of(handle, &context) : driver_ready());
    if (here.depth) here.depth--;
    return context ? push(context) : CUDA_SUCCESS;
}

CALL(cuCtxGetCurrent, CUcontext *found) {
    TRY(driver_ready());
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *found = here.depth ? here.stack[here.depth - 1] : NULL;
    return CUDA_SUCCESS;
}

static CUresult device_of_context(CUdevice *ordinal, CUcontext handle) {
    struct cuda_context *context;
    TRY(context_of(handle, &context));
    if (!ordinal) return CUDA_ERROR_INVALID_VALUE;
    *ordinal = context->device->ordinal;
    return CUDA_SUCCESS;
}

CALL(cuCtxGetDevice, CUdevice *ordinal) { return device_of_context(ordinal, NULL); }
CALL(cuCtxGetDevice_v2, CUdevice *ordinal, CUcontext handle) { return device_of_context(ordinal, handle); }

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
