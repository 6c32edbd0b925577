/* Nodes of graphs, by kind. A node's task is immutable: other parameters make another task. */
#include "driver/cuda_abi.h"
#include "graphs.h"

/* ---- tasks made from parameters; NULL despite success: out of host memory ---------------------------------------- */

static CUresult kernel(const CUDA_KERNEL_NODE_PARAMS *params, bool second_version, struct task **made) {
    struct cuda_function *function;
    u64 duration_ns;
    CUfunction handle = params->function;
    if (!handle && second_version) handle = params->kernel;
    TRY(function_of(handle, &function));
    TRY(shape_check(function, &params->shape));
    TRY(function_duration(function, params->params, params->extra, &duration_ns));
    *made = task_kernel(function, &params->shape, duration_ns);
    return CUDA_SUCCESS;
}

static CUresult host(const CUDA_HOST_NODE_PARAMS *params, struct task **made) {
    if (!params->call) return CUDA_ERROR_INVALID_VALUE;
    *made = task_host(params->call, params->data);
    return CUDA_SUCCESS;
}

static CUresult event(CUevent handle, enum node_kind kind, struct task **made) {
    struct cuda_event *about;
    TRY(event_of(handle, &about));
    *made = task_event(kind, about);
    return CUDA_SUCCESS;
}

static CUresult set(CUcontext handle, const void *params, struct task **made) {
    struct cuda_context *context;
    struct work work;
    TRY(context_of(handle, &context));
    TRY(memory_set_work(context, params, &work));
    *made = task_new(&work);
    return CUDA_SUCCESS;
}

static CUresult alloc(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct task **made) {
    struct cuda_context *context;
    struct work work;
    TRY(context_current(&context));
    TRY(memory_alloc_work(params, &work));
    *made = task_new(&work);
    return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr address, struct task **made) {
    struct cuda_context *context;
    struct work work;
    TRY(context_current(&context));
    TRY(memory_free_work(address, &work));
    *made = task_new(&work);
    return CUDA_SUCCESS;
}

/* A graph with memory can be a child only if its ownership is moved to its parent, which is not simulated. */
static CUresult child_of(CUgraph handle, struct task **made) {
    struct cuda_graph *child;
    TRY(graph_of(handle, &child));
    if (graph_has_memory(child)) return CUDA_ERROR_INVALID_VALUE;
    *made = task_of_child(child);
    return CUDA_SUCCESS;
}

static bool repeats(const CUgraphNode *nodes, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (nodes[i] == nodes[j]) return true;
    return false;
}

/* A new node; takes the task, even on failure. */
static CUresult add(CUgraphNode *made, CUgraph handle, const CUgraphNode *before, size_t count, struct task *task) {
    struct cuda_graph *graph;
    CUresult result = graph_of(handle, &graph);
    if (!result && (!made || (count && !before))) result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && !result; i++)
        if (!before[i] || before[i]->magic != NODE_MAGIC || before[i]->graph != graph)
            result = CUDA_ERROR_INVALID_VALUE;
    if (!result && repeats(before, count)) result = CUDA_ERROR_INVALID_VALUE;
    if (result) {
        task_drop(task);
        return result;
    }
    return graph_add(graph, &(struct nodes){(struct cuda_node **)before, count}, task, made);
}

/* Defines a function that adds a node with the task that `makes` stores in `task`. */
#define ADD(name, makes, ...)                                                                                          \
    CALL(name, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count, __VA_ARGS__) {               \
        struct task *task = NULL;                                                                                      \
        const CUresult result = makes;                                                                                 \
        return result ? result : add(made, graph, before, count, task);                                                \
    }
#define WITH(params, makes) ((params) ? (makes) : CUDA_ERROR_INVALID_VALUE)

ADD(cuGraphAddKernelNode, WITH(params, kernel(params, false, &task)), const CUDA_KERNEL_NODE_PARAMS *params)
ADD(cuGraphAddKernelNode_v2, WITH(params, kernel(params, true, &task)), const CUDA_KERNEL_NODE_PARAMS *params)
ADD(cuGraphAddHostNode, WITH(params, host(params, &task)), const CUDA_HOST_NODE_PARAMS *params)
ADD(cuGraphAddEventRecordNode, event(about, NODE_RECORD_EVENT, &task), CUevent about)
ADD(cuGraphAddEventWaitNode, event(about, NODE_WAIT_EVENT, &task), CUevent about)
ADD(cuGraphAddMemsetNode, WITH(params, set(context, params, &task)), const CUDA_MEMSET_NODE_PARAMS *params,
    CUcontext context)
ADD(cuGraphAddMemAllocNode, WITH(params, alloc(params, &task)), CUDA_MEM_ALLOC_NODE_PARAMS *params)
ADD(cuGraphAddMemFreeNode, release(address, &task), CUdeviceptr address)
ADD(cuGraphAddChildGraphNode, child_of(child, &task), CUgraph child)

CALL(cuGraphAddEmptyNode, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count) {
    return add(made, graph, before, count, task_of_kind(NODE_EMPTY));
}

/* ---- edges and queries ------------------------------------------------------------------------------------------- */

static bool both_in(const struct cuda_graph *graph, const struct cuda_node *from, const struct cuda_node *to) {
    return from && to && from != to && nodes_has(&graph->nodes, from) && nodes_has(&graph->nodes, to);
}

/* Edges with data (ports, programmatic launch) are treated as plain ones. */
static CUresult add_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    struct cuda_graph *graph;
    TRY(graph_of(handle, &graph));
    if (count && (!from || !to)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!both_in(graph, from[i], to[i]) || nodes_has(&to[i]->before, from[i])) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) TRY(nodes_add(&to[i]->before, from[i]));
    return CUDA_SUCCESS;
}

CALL(cuGraphAddDependencies, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    return add_edges(graph, from, to, count);
}
CALL(cuGraphAddDependencies_v2, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
     const CUgraphEdgeData *data, size_t count) {
    (void)data;
    return add_edges(graph, from, to, count);
}

static CUresult of_kind(CUgraphNode handle, enum node_kind kind, const void *out, struct cuda_node **found) {
    TRY(node_of(handle, found));
    return out && (*found)->task->work.kind == kind ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGraphNodeGetType, CUgraphNode handle, int *type) {
    struct cuda_node *node;
    TRY(node_of(handle, &node));
    if (!type) return CUDA_ERROR_INVALID_VALUE;
    *type = (int)node->task->work.kind;
    return CUDA_SUCCESS;
}

/* Parameter values are not stored. */
CALL(cuGraphKernelNodeGetParams_v2, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out) {
    struct cuda_node *node;
    TRY(of_kind(handle, NODE_KERNEL, out, &node));
    *out = (CUDA_KERNEL_NODE_PARAMS){.function = node->task->function, .shape = node->task->shape};
    return CUDA_SUCCESS;
}

CALL(cuGraphMemAllocNodeGetParams, CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *out) {
    struct cuda_node *node;
    TRY(of_kind(handle, NODE_ALLOC, out, &node));
    *out = node->task->allocates;
    return CUDA_SUCCESS;
}

CALL(cuGraphChildGraphNodeGetGraph, CUgraphNode handle, CUgraph *out) {
    struct cuda_node *node;
    CUresult result = of_kind(handle, NODE_CHILD, out, &node);
    if (!result) *out = node->task->child;
    return result;
}
