/* Changes of executables: other parameters, nodes switched off, another graph of the same form. */
#include "executables.h"

#include <string.h>

enum { UPDATED = 0, TOPOLOGY_CHANGED = 2, TYPE_CHANGED = 3 };

/* A clone's nodes stand for those of the graph that was instantiated. */
static struct step *step_of(struct executable *executable, const struct node *node) {
    for (u32 i = 0; i < executable->count; i++)
        if (executable->steps[i].node == node) return &executable->steps[i];
    return NULL;
}

static CUresult replace(CUgraphExec handle, CUgraphNode node, struct task *task) {
    struct executable *executable;
    CUresult result = executable_of(handle, &executable);
    struct step *step = result ? NULL : step_of(executable, node);
    if (!result && (!step || step->task->work.kind != task->work.kind || task->child))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result) {
        task_drop(task);
        return result;
    }
    pthread_mutex_lock(&executable->lock);
    task_drop(step->task);
    step->task = task;
    executable_measure(executable);
    pthread_mutex_unlock(&executable->lock);
    return CUDA_SUCCESS;
}

static CUresult set_params(CUgraphExec executable, CUgraphNode node, const CUgraphNodeParams *params) {
    struct task *task = NULL;
    CUresult result = task_of_params(params, &task);
    return result ? result : replace(executable, node, task);
}

CALL(cuGraphExecNodeSetParams, CUgraphExec executable, CUgraphNode node, CUgraphNodeParams *params) {
    return params ? set_params(executable, node, params) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_kernel(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel,
                           size_t bytes) {
    if (!kernel) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = NODE_KERNEL};
    memcpy(&params.kernel, kernel, bytes);
    return set_params(executable, node, &params);
}

CALL(cuGraphExecKernelNodeSetParams, CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel) {
    return set_kernel(executable, node, kernel, offsetof(CUDA_KERNEL_NODE_PARAMS, kernel));
}
CALL(cuGraphExecKernelNodeSetParams_v2, CUgraphExec executable, CUgraphNode node,
     const CUDA_KERNEL_NODE_PARAMS *kernel) {
    return set_kernel(executable, node, kernel, sizeof *kernel);
}

CALL(cuGraphExecMemcpyNodeSetParams, CUgraphExec executable, CUgraphNode node, const void *copy, CUcontext context) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = NODE_MEMCPY, .memcpy.context = context};
    memcpy(params.memcpy.copy, copy, sizeof params.memcpy.copy);
    return set_params(executable, node, &params);
}

CALL(cuGraphExecMemsetNodeSetParams, CUgraphExec executable, CUgraphNode node, const void *set, CUcontext context) {
    if (!set) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = NODE_MEMSET, .memset.context = context};
    memcpy(params.memset.set, set, sizeof params.memset.set);
    return set_params(executable, node, &params);
}

CALL(cuGraphExecHostNodeSetParams, CUgraphExec executable, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host) {
    if (!host) return CUDA_ERROR_INVALID_VALUE;
    return set_params(executable, node, &(CUgraphNodeParams){.type = NODE_HOST, .host = *host});
}

CALL(cuGraphExecEventRecordNodeSetEvent, CUgraphExec executable, CUgraphNode node, CUevent event) {
    return set_params(executable, node, &(CUgraphNodeParams){.type = NODE_RECORD_EVENT, .event = event});
}

CALL(cuGraphExecEventWaitNodeSetEvent, CUgraphExec executable, CUgraphNode node, CUevent event) {
    return set_params(executable, node, &(CUgraphNodeParams){.type = NODE_WAIT_EVENT, .event = event});
}

static bool can_be_disabled(const struct step *step) {
    enum node_kind kind = step->task->work.kind;
    return kind == NODE_KERNEL || kind == NODE_MEMCPY || kind == NODE_MEMSET;
}

CALL(cuGraphNodeSetEnabled, CUgraphExec handle, CUgraphNode node, unsigned enabled) {
    struct executable *executable;
    CUresult result = executable_of(handle, &executable);
    struct step *step = result ? NULL : step_of(executable, node);
    if (result) return result;
    if (!step || !can_be_disabled(step)) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&executable->lock);
    step->disabled = !enabled;
    executable_measure(executable);
    pthread_mutex_unlock(&executable->lock);
    return CUDA_SUCCESS;
}

CALL(cuGraphNodeGetEnabled, CUgraphExec handle, CUgraphNode node, unsigned *enabled) {
    struct executable *executable;
    CUresult result = executable_of(handle, &executable);
    struct step *step = result ? NULL : step_of(executable, node);
    if (result) return result;
    if (!step || !enabled || !can_be_disabled(step)) return CUDA_ERROR_INVALID_VALUE;
    *enabled = !step->disabled;
    return CUDA_SUCCESS;
}

/* The first difference of form between two lists of steps. */
static int difference(const struct executable *old, const struct step *steps, u32 count, u32 *where) {
    *where = 0;
    if (old->count != count) return TOPOLOGY_CHANGED;
    for (u32 i = 0; i < count; i++) {
        const struct step *was = &old->steps[i], *is = &steps[i];
        *where = i;
        if (was->task->work.kind != is->task->work.kind) return TYPE_CHANGED;
        size_t bytes = is->before_count * sizeof *is->before;
        if (was->before_count != is->before_count || (bytes && memcmp(was->before, is->before, bytes)))
            return TOPOLOGY_CHANGED;
    }
    return UPDATED;
}

/* The steps keep the nodes that they were made from: those are the ones that the program knows. */
static void exchange_tasks(struct executable *executable, struct step *steps) {
    pthread_mutex_lock(&executable->lock);
    for (u32 i = 0; i < executable->count; i++) {
        struct task *old = executable->steps[i].task;
        executable->steps[i].task = steps[i].task;
        steps[i].task = old;
    }
    executable_measure(executable);
    pthread_mutex_unlock(&executable->lock);
}

static CUresult update(CUgraphExec handle, CUgraph with, int *answer, CUgraphNode *failed) {
    struct executable *executable;
    struct graph *graph;
    struct step *steps;
    u32 count, where;
    CUresult result = executable_of(handle, &executable);
    if (!result) result = graph_of(with, &graph);
    if (result) return result;
    if (!answer) return CUDA_ERROR_INVALID_VALUE;
    result = steps_of(graph, &steps, &count);
    if (result) return result;
    *answer = difference(executable, steps, count, &where);
    if (failed) *failed = *answer && where < count ? (CUgraphNode)steps[where].node : NULL;
    if (*answer == UPDATED) exchange_tasks(executable, steps);
    steps_drop(steps, count);
    return *answer == UPDATED ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CALL(cuGraphExecUpdate, CUgraphExec executable, CUgraph graph, CUgraphNode *failed, int *answer) {
    return update(executable, graph, answer, failed);
}

CALL(cuGraphExecUpdate_v2, CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
    if (!info) return CUDA_ERROR_INVALID_VALUE;
    info->failed_from = NULL;
    return update(executable, graph, &info->result, &info->failed);
}
