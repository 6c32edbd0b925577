/* Updates of executables: another graph of the same topology, with other parameters. */
#include "executables.h"

#include <string.h>

enum { UPDATED = 0, TOPOLOGY_CHANGED = 2, TYPE_CHANGED = 3 };

/* The first difference in topology between two lists of steps. */
static int difference(const struct cuda_executable *old, const struct step *steps, u32 count, u32 *where) {
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

/* The steps keep their original nodes, which are the ones that the program knows. */
static void exchange_tasks(struct cuda_executable *executable, struct step *steps) {
    HOLD(executable->lock);
    for (u32 i = 0; i < executable->count; i++) {
        struct task *old = executable->steps[i].task;
        executable->steps[i].task = steps[i].task;
        steps[i].task = old;
    }
    executable_measure(executable);
}

static CUresult update(CUgraphExec handle, CUgraph with, int *answer, CUgraphNode *failed) {
    struct cuda_executable *executable;
    struct cuda_graph *graph;
    struct step *steps;
    u32 count, where;
    TRY(executable_of(handle, &executable));
    TRY(graph_of(with, &graph));
    if (!answer) return CUDA_ERROR_INVALID_VALUE;
    TRY(steps_of(graph, &steps, &count));
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
