/* What nodes of graphs depend on. Edges with data (ports, programmatic launch) count as plain ones. */
#include "graphs.h"

#include <string.h>

static CUresult edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count) {
    struct graph *graph;
    CUresult result = graph_of(handle, &graph);
    if (result) return result;
    if (!count || (!from != !to)) return CUDA_ERROR_INVALID_VALUE;
    size_t found = 0;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        struct node *node = graph->nodes.node[i];
        for (size_t j = 0; j < node->before.count; j++, found++) {
            if (!from || found >= *count) continue;
            from[found] = node->before.node[j];
            to[found] = node;
            if (data) data[found] = (CUgraphEdgeData){0};
        }
    }
    for (size_t i = found; from && i < *count; i++) from[i] = to[i] = NULL;
    if (!from || *count > found) *count = found;
    return CUDA_SUCCESS;
}

CALL(cuGraphGetEdges, CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
    return edges(graph, from, to, NULL, count);
}
CALL(cuGraphGetEdges_v2, CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count) {
    return edges(graph, from, to, data, count);
}

static CUresult dependencies(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data, size_t *count) {
    struct node *node;
    CUresult result = node_of(handle, &node);
    if (!result) result = nodes_answer(&node->before, out, count);
    if (!result && out && data) memset(data, 0, *count * sizeof *data);
    return result;
}

CALL(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode *out, size_t *count) {
    return dependencies(node, out, NULL, count);
}
CALL(cuGraphNodeGetDependencies_v2, CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data, size_t *count) {
    return dependencies(node, out, data, count);
}

static CUresult dependents(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data, size_t *count) {
    struct node *node;
    CUresult result = node_of(handle, &node);
    if (result) return result;
    struct nodes after = {0};
    const struct nodes *all = &node->graph->nodes;
    for (size_t i = 0; i < all->count && !result; i++)
        if (nodes_has(&all->node[i]->before, node)) result = nodes_add(&after, all->node[i]);
    if (!result) result = nodes_answer(&after, out, count);
    if (!result && out && data) memset(data, 0, *count * sizeof *data);
    nodes_clear(&after);
    return result;
}

CALL(cuGraphNodeGetDependentNodes, CUgraphNode node, CUgraphNode *out, size_t *count) {
    return dependents(node, out, NULL, count);
}
CALL(cuGraphNodeGetDependentNodes_v2, CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data, size_t *count) {
    return dependents(node, out, data, count);
}

static bool both_in(const struct graph *graph, const struct node *from, const struct node *to) {
    return from && to && from != to && nodes_has(&graph->nodes, from) && nodes_has(&graph->nodes, to);
}

static CUresult change(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t count, bool add) {
    struct graph *graph;
    CUresult result = graph_of(handle, &graph);
    if (result) return result;
    if (count && (!from || !to)) return CUDA_ERROR_INVALID_VALUE;
    if (!add && graph_has_memory(graph)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!both_in(graph, from[i], to[i]) || nodes_has(&to[i]->before, from[i]) == add)
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && !result; i++) {
        if (add)
            result = nodes_add(&to[i]->before, from[i]);
        else
            nodes_remove(&to[i]->before, from[i]);
    }
    return result;
}

CALL(cuGraphAddDependencies, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    return change(graph, from, to, count, true);
}
CALL(cuGraphAddDependencies_v2, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
     const CUgraphEdgeData *data, size_t count) {
    (void)data;
    return change(graph, from, to, count, true);
}
CALL(cuGraphRemoveDependencies, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    return change(graph, from, to, count, false);
}
CALL(cuGraphRemoveDependencies_v2, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
     const CUgraphEdgeData *data, size_t count) {
    (void)data;
    return change(graph, from, to, count, false);
}
