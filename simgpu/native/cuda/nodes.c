/* Nodes of graphs, by kind. What a node does never changes: other parameters are another task. */
#include "driver/cuda_abi.h"
#include "graphs.h"

#include <string.h>

static struct task *task_of_kind(enum node_kind kind) { return task_new(&(struct work){.kind = kind}); }

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

CUresult task_kernel(struct cuda_function *function, const struct shape *shape, u64 duration_ns, struct task **made) {
    struct task *task = task_new(&(struct work){.kind = NODE_KERNEL, .duration_ns = duration_ns});
    if (!task) return CUDA_ERROR_OUT_OF_MEMORY;
    task->function = function;
    task->shape = *shape;
    *made = task;
    return CUDA_SUCCESS;
}

static CUresult kernel(const CUDA_KERNEL_NODE_PARAMS *params, bool second_version, struct task **made) {
    struct cuda_function *function;
    u64 duration_ns;
    CUfunction handle = params->function;
    if (!handle && second_version) handle = params->kernel;
    CUresult result = function_of(handle, &function);
    if (!result) result = shape_check(function, &params->shape);
    if (!result) result = function_duration(function, params->params, params->extra, &duration_ns);
    return result ? result : task_kernel(function, &params->shape, duration_ns, made);
}

static CUresult host(const CUDA_HOST_NODE_PARAMS *params, struct task **made) {
    if (!params->call) return CUDA_ERROR_INVALID_VALUE;
    struct task *task = task_of_kind(NODE_HOST);
    if (!task) return CUDA_ERROR_OUT_OF_MEMORY;
    task->call = params->call;
    task->data = params->data;
    *made = task;
    return CUDA_SUCCESS;
}

static CUresult event(CUevent handle, enum node_kind kind, struct task **made) {
    struct cuda_event *about;
    TRY(event_of(handle, &about));
    struct task *task = task_of_kind(kind);
    if (!task) return CUDA_ERROR_OUT_OF_MEMORY;
    task->event = about;
    *made = task;
    return CUDA_SUCCESS;
}

/* `given` are the parameters as memory's files made work of them. */
static CUresult memory(const struct work *work, const void *given, size_t bytes, struct task **made) {
    struct task *task = task_new(work);
    if (!task) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(task->given, given, bytes);
    *made = task;
    return CUDA_SUCCESS;
}

static CUresult set(CUcontext handle, const void *params, struct task **made) {
    struct cuda_context *context;
    struct work work;
    CUresult result = context_of(handle, &context);
    if (!result) result = memory_set_work(context, params, &work);
    return result ? result : memory(&work, params, sizeof(CUDA_MEMSET_NODE_PARAMS), made);
}

static CUresult alloc(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct task **made) {
    struct cuda_context *context;
    struct work work;
    CUresult result = context_current(&context);
    if (!result) result = memory_alloc_work(context, params, &work);
    return result ? result : memory(&work, params, sizeof *params, made);
}

static CUresult release(CUdeviceptr address, struct task **made) {
    struct cuda_context *context;
    struct work work;
    CUresult result = context_current(&context);
    if (!result) result = memory_free_work(context, address, &work);
    return result ? result : memory(&work, &address, sizeof address, made);
}

static bool repeats(const CUgraphNode *nodes, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (nodes[i] == nodes[j]) return true;
    return false;
}

/* A new node, if there was a task. */
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

#define ADD(made_by)                                                                                                   \
    struct task *task = NULL;                                                                                          \
    CUresult result = made_by;                                                                                         \
    return result ? result : add(made, graph, before, count, task)

CALL(cuGraphAddKernelNode, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count,
     const CUDA_KERNEL_NODE_PARAMS *params) {
    ADD(params ? kernel(params, false, &task) : CUDA_ERROR_INVALID_VALUE);
}
CALL(cuGraphAddKernelNode_v2, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count,
     const CUDA_KERNEL_NODE_PARAMS *params) {
    ADD(params ? kernel(params, true, &task) : CUDA_ERROR_INVALID_VALUE);
}
CALL(cuGraphAddHostNode, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count,
     const CUDA_HOST_NODE_PARAMS *params) {
    ADD(params ? host(params, &task) : CUDA_ERROR_INVALID_VALUE);
}
CALL(cuGraphAddEmptyNode, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count) {
    ADD((task = task_of_kind(NODE_EMPTY)) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
CALL(cuGraphAddEventRecordNode, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count,
     CUevent about) {
    ADD(event(about, NODE_RECORD_EVENT, &task));
}
CALL(cuGraphAddEventWaitNode, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count,
     CUevent about) {
    ADD(event(about, NODE_WAIT_EVENT, &task));
}
CALL(cuGraphAddMemsetNode, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count,
     const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context) {
    ADD(params ? set(context, params, &task) : CUDA_ERROR_INVALID_VALUE);
}
CALL(cuGraphAddMemAllocNode, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count,
     CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    ADD(params ? alloc(params, &task) : CUDA_ERROR_INVALID_VALUE);
}
CALL(cuGraphAddMemFreeNode, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count,
     CUdeviceptr address) {
    ADD(release(address, &task));
}

/* A graph with memory can only be a child when it is given away to its parent. */
static CUresult child_of(CUgraph handle, int ownership, struct task **made) {
    struct cuda_graph *child;
    TRY(graph_of(handle, &child));
    if (ownership != CU_GRAPH_CHILD_MOVED && graph_has_memory(child)) return CUDA_ERROR_INVALID_VALUE;
    *made = task_of_child(child);
    return *made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CALL(cuGraphAddChildGraphNode, CUgraphNode *made, CUgraph graph, const CUgraphNode *before, size_t count,
     CUgraph child) {
    ADD(child_of(child, 0, &task));
}

/* ---- edges and questions ----------------------------------------------------------------------------------------- */

static bool both_in(const struct cuda_graph *graph, const struct cuda_node *from, const struct cuda_node *to) {
    return from && to && from != to && nodes_has(&graph->nodes, from) && nodes_has(&graph->nodes, to);
}

/* Edges with data (ports, programmatic launch) count as plain ones. */
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

/* Values of parameters are not kept. */
CALL(cuGraphKernelNodeGetParams_v2, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out) {
    struct cuda_node *node;
    TRY(of_kind(handle, NODE_KERNEL, out, &node));
    *out = (CUDA_KERNEL_NODE_PARAMS){.function = node->task->function, .shape = node->task->shape};
    return CUDA_SUCCESS;
}

CALL(cuGraphMemAllocNodeGetParams, CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *out) {
    struct cuda_node *node;
    CUresult result = of_kind(handle, NODE_ALLOC, out, &node);
    if (!result) memcpy(out, node->task->given, sizeof *out);
    return result;
}

CALL(cuGraphChildGraphNodeGetGraph, CUgraphNode handle, CUgraph *out) {
    struct cuda_node *node;
    CUresult result = of_kind(handle, NODE_CHILD, out, &node);
    if (!result) *out = node->task->child;
    return result;
}
