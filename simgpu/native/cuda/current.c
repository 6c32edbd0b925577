/* The current context: each thread has a stack of contexts. */
#include "streams.h"

static struct cuda_context *top(void) {
    const struct thread *here = thread_here();
    return here->depth ? here->stack[here->depth - 1] : NULL;
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
    struct cuda_context *context = top();
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

CUresult context_push(struct cuda_context *context) {
    struct thread *here = thread_here();
    if (here->depth == sizeof here->stack / sizeof *here->stack) return CUDA_ERROR_OUT_OF_MEMORY;
    here->stack[here->depth++] = context;
    return CUDA_SUCCESS;
}

CALL(cuCtxPushCurrent_v2, CUcontext handle) {
    struct cuda_context *context;
    if (!handle) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = context_of(handle, &context);
    return result ? result : context_push(context);
}

CALL(cuCtxPopCurrent_v2, CUcontext *popped) {
    TRY(driver_ready());
    struct cuda_context *context = top();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    thread_here()->depth--;
    if (popped) *popped = context;
    return CUDA_SUCCESS;
}

/* Replaces the top of the stack; NULL pops it. */
CALL(cuCtxSetCurrent, CUcontext handle) {
    struct cuda_context *context = NULL;
    TRY(handle ? context_of(handle, &context) : driver_ready());
    if (top()) thread_here()->depth--;
    return context ? context_push(context) : CUDA_SUCCESS;
}

CALL(cuCtxGetCurrent, CUcontext *found) {
    TRY(driver_ready());
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *found = top();
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
