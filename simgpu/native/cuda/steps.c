/* Flattens a graph with children into one list of steps, in dependency order. */
#include "executables.h"

#include <stdlib.h>

struct list {
    struct step *step;
    u32 count, room;
};

void steps_drop(struct step *steps, u32 count) {
    for (u32 i = 0; i < count; i++) {
        task_drop(steps[i].task);
        free(steps[i].before);
    }
    free(steps);
}

static CUresult append(struct list *list, const struct cuda_node *node, struct task *task) {
    if (list->count == list->room) {
        u32 room = list->room ? list->room * 2 : 16;
        struct step *grown = realloc(list->step, room * sizeof *grown);
        if (!grown) return CUDA_ERROR_OUT_OF_MEMORY;
        list->step = grown;
        list->room = room;
    }
    list->step[list->count++] = (struct step){.task = task_keep(task), .node = node};
    return CUDA_SUCCESS;
}

static CUresult come_after(struct step *step, u32 other) {
    u32 *grown = realloc(step->before, (step->before_count + 1) * sizeof *grown);
    if (!grown) return CUDA_ERROR_OUT_OF_MEMORY;
    step->before = grown;
    step->before[step->before_count++] = other;
    return CUDA_SUCCESS;
}

static CUresult add_graph(struct list *list, const struct cuda_graph *graph, int entry);

/* One node: a step after those of its dependencies. A child's steps are between its node's step and an end step. */
static CUresult add_node(struct list *list, const struct cuda_node *node, const u32 *last_of, int entry) {
    CUresult result = append(list, node, node->task);
    u32 own = list->count - 1;
    for (size_t i = 0; i < node->before.count && !result; i++)
        result = come_after(&list->step[own], last_of[node->before.node[i]->index]);
    if (!result && !node->before.count && entry >= 0) result = come_after(&list->step[own], (u32)entry);
    if (result || !node->task->child) return result;
    result = add_graph(list, node->task->child, (int)own);
    u32 end = list->count;
    if (!result) result = append(list, node, node->task);
    for (u32 i = own; i < end && !result; i++) result = come_after(&list->step[end], i);
    return result;
}

static CUresult add_graph(struct list *list, const struct cuda_graph *graph, int entry) {
    size_t count = graph->nodes.count;
    struct cuda_node **order = calloc(count + 1, sizeof *order);
    u32 *last_of = calloc(count + 1, sizeof *last_of);
    CUresult result = order && last_of ? graph_sort(graph, order) : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && !result; i++) {
        result = add_node(list, order[i], last_of, entry);
        if (!result) last_of[order[i]->index] = list->count - 1;
    }
    free(order);
    free(last_of);
    return result;
}

CUresult steps_of(const struct cuda_graph *graph, struct step **steps, u32 *count) {
    struct list list = {0};
    CUresult result = add_graph(&list, graph, -1);
    if (result) {
        steps_drop(list.step, list.count);
        return result;
    }
    *steps = list.step;
    *count = list.count;
    return CUDA_SUCCESS;
}
