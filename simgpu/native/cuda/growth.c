/* Contexts' memory besides programs' allocations: local memory of kernels, and executables of graphs. Code belongs to
 * the images (modules.c). */
#include "driver.h"

#include <stdlib.h>

struct growth {
    struct cuda_context *context;
    u64 piece;
    struct growth **holder; /* NULL: the context's own */
    struct growth *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of it */

static CUresult add(struct cuda_context *context, u32 kind, u64 bytes, struct growth **holder) {
    struct growth *growth = calloc(1, sizeof *growth);
    if (!growth) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = memory_grow(context->device, kind, bytes, &growth->piece);
    if (result) {
        free(growth);
        return result;
    }
    growth->context = context;
    growth->holder = holder;
    growth->next = context->grown;
    context->grown = growth;
    if (holder) *holder = growth;
    return CUDA_SUCCESS;
}

CUresult growth_new(struct cuda_context *context, u32 kind, u64 bytes, struct growth **holder) {
    HOLD(lock);
    return add(context, kind, bytes, holder);
}

void growth_drop(struct growth **holder) {
    HOLD(lock);
    struct growth *growth = *holder;
    if (!growth) return;
    UNLINK(growth->context->grown, growth, next);
    memory_give_back(growth->piece);
    *holder = NULL;
    free(growth);
}

CUresult locals_grow(struct cuda_context *context, u64 bytes) {
    if (bytes <= atomic_load_explicit(&context->locals, memory_order_relaxed)) return CUDA_SUCCESS;
    HOLD(lock);
    if (bytes <= context->locals) return CUDA_SUCCESS;
    const struct sim_model *model = &context->device->about->model;
    const u64 threads = (u64)model->sms * model->threads_per_sm;
    const CUresult result = add(context, SIM_LOCALS, threads * (bytes - context->locals), NULL);
    if (!result) atomic_store(&context->locals, bytes);
    return result;
}

void growth_context_gone(struct cuda_context *context) {
    HOLD(lock);
    atomic_store(&context->locals, LOCALS_AT_FIRST);
    for (struct growth *growth; (growth = context->grown);) {
        context->grown = growth->next;
        memory_give_back(growth->piece);
        if (growth->holder) *growth->holder = NULL;
        free(growth);
    }
}
