/* Graphs: nodes and their dependencies. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

/* ---- sets of nodes ----------------------------------------------------------------------------------------------- */

bool nodes_has(const struct nodes *nodes, const struct cuda_node *node) {
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->node[i] == node) return true;
    return false;
}

/* Arrays grow at powers of two, so their capacity needs no field. */
CUresult nodes_add(struct nodes *nodes, struct cuda_node *node) {
    if (!(nodes->count & (nodes->count - 1))) {
        size_t room = nodes->count ? nodes->count * 2 : 1;
        struct cuda_node **grown = realloc(nodes->node, room * sizeof *grown);
        if (!grown) return CUDA_ERROR_OUT_OF_MEMORY;
        nodes->node = grown;
    }
    nodes->node[nodes->count++] = node;
    return CUDA_SUCCESS;
}

CUresult nodes_add_all(struct nodes *nodes, const struct nodes *more) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < more->count && !result; i++)
        if (!nodes_has(nodes, more->node[i])) result = nodes_add(nodes, more->node[i]);
    return result;
}

/* Does not shrink the array, so that its capacity matches what nodes_add assumes. */
void nodes_remove(struct nodes *nodes, const struct cuda_node *node) {
    struct nodes kept = {0};
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->node[i] != node && nodes_add(&kept, nodes->node[i])) break;
    nodes_clear(nodes);
    *nodes = kept;
}

void nodes_clear(struct nodes *nodes) {
    free(nodes->node);
    *nodes = (struct nodes){0};
}

CUresult nodes_answer(const struct nodes *nodes, CUgraphNode *out, size_t *count) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; out && i < *count; i++) out[i] = i < nodes->count ? nodes->node[i] : NULL;
    if (!out || *count > nodes->count) *count = nodes->count;
    return CUDA_SUCCESS;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

struct task *task_new(const struct work *work) {
    struct task *task = calloc(1, sizeof *task);
    if (!task) {
        if (work->drop) work->drop(work->argument);
        return NULL;
    }
    task->references = 1;
    task->work = *work;
    if (work->allocates) task->allocates = *work->allocates;
    task->work.allocates = NULL;
    return task;
}

struct task *task_keep(struct task *task) {
    atomic_fetch_add(&task->references, 1);
    return task;
}

struct task *task_of_kind(enum node_kind kind) { return task_new(&(struct work){.kind = kind}); }

struct task *task_kernel(struct cuda_function *function, const struct shape *shape, u64 duration_ns) {
    struct task *task = task_new(&(struct work){.kind = NODE_KERNEL, .duration_ns = duration_ns});
    if (task) task->function = function;
    if (task) task->shape = *shape;
    return task;
}

struct task *task_host(CUhostFn call, void *data) {
    struct task *task = task_of_kind(NODE_HOST);
    if (task) task->call = call;
    if (task) task->data = data;
    return task;
}

struct task *task_event(enum node_kind kind, struct cuda_event *event) {
    struct task *task = task_of_kind(kind);
    if (task) task->event = event;
    return task;
}

void task_drop(struct task *task) {
    if (!task || atomic_fetch_sub(&task->references, 1) != 1) return;
    if (task->work.drop) task->work.drop(task->work.argument);
    if (task->child) graph_drop(task->child);
    free(task);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

CUresult graph_of(CUgraph handle, struct cuda_graph **found) {
    TRY(driver_ready());
    if (!handle || handle->magic != GRAPH_MAGIC) return CUDA_ERROR_INVALID_VALUE;
    *found = handle;
    return CUDA_SUCCESS;
}

CUresult node_of(CUgraphNode handle, struct cuda_node **found) {
    TRY(driver_ready());
    if (!handle || handle->magic != NODE_MAGIC) return CUDA_ERROR_INVALID_VALUE;
    *found = handle;
    return CUDA_SUCCESS;
}

CUresult graph_new(struct cuda_graph **made) {
    struct cuda_graph *graph = calloc(1, sizeof *graph);
    if (!graph) return CUDA_ERROR_OUT_OF_MEMORY;
    graph->magic = GRAPH_MAGIC;
    *made = graph;
    return CUDA_SUCCESS;
}

static void node_drop(struct cuda_node *node) {
    node->magic = 0;
    task_drop(node->task);
    nodes_clear(&node->before);
    free(node);
}

bool graph_has_memory(const struct cuda_graph *graph) {
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct task *task = graph->nodes.node[i]->task;
        if (task->work.kind == NODE_ALLOC || task->work.kind == NODE_FREE) return true;
        if (task->child && graph_has_memory(task->child)) return true;
    }
    return false;
}

void graph_drop(struct cuda_graph *graph) {
    if (graph->instance) *graph->instance = NULL;
    for (size_t i = 0; i < graph->nodes.count; i++) node_drop(graph->nodes.node[i]);
    nodes_clear(&graph->nodes);
    graph->magic = 0;
    free(graph);
}

CUresult graph_add(struct cuda_graph *graph, const struct nodes *before, struct task *task, struct cuda_node **made) {
    struct cuda_node *node = task ? calloc(1, sizeof *node) : NULL;
    if (!node) {
        task_drop(task);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *node = (struct cuda_node){.magic = NODE_MAGIC, .graph = graph, .task = task, .index = graph->nodes.count};
    CUresult result = nodes_add_all(&node->before, before);
    if (!result) result = nodes_add(&graph->nodes, node);
    if (result)
        node_drop(node);
    else
        *made = node;
    return result;
}

static void number(const struct cuda_graph *graph) {
    for (size_t i = 0; i < graph->nodes.count; i++) graph->nodes.node[i]->index = i;
}

CUresult graph_sort(const struct cuda_graph *graph, struct cuda_node **order) {
    size_t count = graph->nodes.count, done = 0;
    bool *placed = calloc(count + 1, sizeof *placed);
    if (!placed) return CUDA_ERROR_OUT_OF_MEMORY;
    number(graph);
    for (bool progress = true; progress && done < count;) {
        progress = false;
        for (size_t i = 0; i < count; i++) {
            struct cuda_node *node = graph->nodes.node[i];
            size_t waits = 0;
            for (size_t j = 0; j < node->before.count; j++) waits += !placed[node->before.node[j]->index];
            if (placed[i] || waits) continue;
            order[done++] = node;
            placed[i] = progress = true;
        }
    }
    free(placed);
    return done == count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult clone_edges(const struct cuda_graph *from, struct cuda_graph *to) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < from->nodes.count; i++) {
        const struct nodes *before = &from->nodes.node[i]->before;
        for (size_t j = 0; j < before->count && !result; j++)
            result = nodes_add(&to->nodes.node[i]->before, to->nodes.node[before->node[j]->index]);
    }
    return result;
}

struct task *task_of_child(const struct cuda_graph *child) {
    struct cuda_graph *own;
    if (graph_clone(child, &own)) return NULL;
    struct task *task = task_of_kind(NODE_CHILD);
    if (!task) {
        graph_drop(own);
        return NULL;
    }
    own->owned = true;
    task->child = own;
    return task;
}

/* Child graphs are cloned with their parent; all other tasks are shared, as tasks are immutable. */
CUresult graph_clone(const struct cuda_graph *graph, struct cuda_graph **made) {
    struct cuda_graph *clone;
    CUresult result = graph_new(&clone);
    if (result) return result;
    number(graph);
    for (size_t i = 0; i < graph->nodes.count && !result; i++) {
        struct cuda_node *from = graph->nodes.node[i], *to;
        struct task *task = from->task->child ? task_of_child(from->task->child) : task_keep(from->task);
        result = graph_add(clone, &(struct nodes){0}, task, &to);
        if (result) break;
        to->copy_of = from;
    }
    if (!result) result = clone_edges(graph, clone);
    if (result)
        graph_drop(clone);
    else
        *made = clone;
    return result;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

CALL(cuGraphCreate, CUgraph *made, unsigned flags) {
    TRY(driver_ready());
    return made && !flags ? graph_new(made) : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGraphDestroy, CUgraph handle) {
    struct cuda_graph *graph;
    TRY(graph_of(handle, &graph));
    if (graph->owned) return CUDA_ERROR_INVALID_VALUE;
    graph_drop(graph);
    return CUDA_SUCCESS;
}

CALL(cuGraphClone, CUgraph *made, CUgraph handle) {
    struct cuda_graph *graph;
    TRY(graph_of(handle, &graph));
    return made && !graph_has_memory(graph) ? graph_clone(graph, made) : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGraphNodeFindInClone, CUgraphNode *found, CUgraphNode original, CUgraph handle) {
    struct cuda_graph *graph;
    TRY(graph_of(handle, &graph));
    for (size_t i = 0; found && i < graph->nodes.count; i++)
        if (graph->nodes.node[i]->copy_of == original) {
            *found = graph->nodes.node[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGraphGetNodes, CUgraph handle, CUgraphNode *nodes, size_t *count) {
    struct cuda_graph *graph;
    CUresult result = graph_of(handle, &graph);
    return result ? result : nodes_answer(&graph->nodes, nodes, count);
}

CALL(cuGraphGetRootNodes, CUgraph handle, CUgraphNode *nodes, size_t *count) {
    struct cuda_graph *graph;
    TRY(graph_of(handle, &graph));
    struct nodes roots = {0};
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < graph->nodes.count && !result; i++)
        if (!graph->nodes.node[i]->before.count) result = nodes_add(&roots, graph->nodes.node[i]);
    if (!result) result = nodes_answer(&roots, nodes, count);
    nodes_clear(&roots);
    return result;
}

CALL(cuGraphDestroyNode, CUgraphNode handle) {
    struct cuda_node *node;
    TRY(node_of(handle, &node));
    struct cuda_graph *graph = node->graph;
    if (graph_has_memory(graph)) return CUDA_ERROR_INVALID_VALUE;
    nodes_remove(&graph->nodes, node);
    for (size_t i = 0; i < graph->nodes.count; i++) nodes_remove(&graph->nodes.node[i]->before, node);
    node_drop(node);
    return CUDA_SUCCESS;
}
