/* What programs ask of nodes that they made. */
#include "abi_memory.h"
#include "graphs.h"

#include <string.h>

static CUresult of_kind(CUgraphNode handle, enum node_kind kind, const void *out, struct node **found) {
    CUresult result = node_of(handle, found);
    if (result) return result;
    return out && (*found)->task->work.kind == kind ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGraphNodeGetType, CUgraphNode handle, int *type) {
    struct node *node;
    CUresult result = node_of(handle, &node);
    if (result) return result;
    if (!type) return CUDA_ERROR_INVALID_VALUE;
    *type = (int)node->task->work.kind;
    return CUDA_SUCCESS;
}

CALL(cuGraphNodeGetContainingGraph, CUgraphNode handle, CUgraph *graph) {
    struct node *node;
    CUresult result = node_of(handle, &node);
    if (result) return result;
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    *graph = node->graph;
    return CUDA_SUCCESS;
}

/* The parameters of a kernel are not kept, as nobody knows their sizes: both pointers are NULL. */
static CUresult kernel(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out, bool second_version) {
    struct node *node;
    CUresult result = of_kind(handle, NODE_KERNEL, out, &node);
    if (result) return result;
    out->function = node->task->function;
    out->shape = node->task->shape;
    out->params = out->extra = NULL;
    if (!second_version) return CUDA_SUCCESS;
    out->kernel = NULL;
    out->context = node->task->function->image->context;
    return CUDA_SUCCESS;
}

CALL(cuGraphKernelNodeGetParams, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out) { return kernel(node, out, false); }
CALL(cuGraphKernelNodeGetParams_v2, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out) { return kernel(node, out, true); }

CALL(cuGraphHostNodeGetParams, CUgraphNode handle, CUDA_HOST_NODE_PARAMS *out) {
    struct node *node;
    CUresult result = of_kind(handle, NODE_HOST, out, &node);
    if (!result) *out = (CUDA_HOST_NODE_PARAMS){node->task->call, node->task->data};
    return result;
}

static CUresult given(CUgraphNode handle, enum node_kind kind, void *out, size_t bytes) {
    struct node *node;
    CUresult result = of_kind(handle, kind, out, &node);
    if (!result) memcpy(out, node->task->given, bytes);
    return result;
}

CALL(cuGraphMemcpyNodeGetParams, CUgraphNode node, CUDA_MEMCPY3D *out) {
    return given(node, NODE_MEMCPY, out, sizeof *out);
}
CALL(cuGraphMemsetNodeGetParams, CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out) {
    return given(node, NODE_MEMSET, out, sizeof *out);
}
CALL(cuGraphMemAllocNodeGetParams, CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *out) {
    return given(node, NODE_ALLOC, out, sizeof *out);
}
CALL(cuGraphMemFreeNodeGetParams, CUgraphNode node, CUdeviceptr *out) {
    return given(node, NODE_FREE, out, sizeof *out);
}

static CUresult event(CUgraphNode handle, enum node_kind kind, CUevent *out) {
    struct node *node;
    CUresult result = of_kind(handle, kind, out, &node);
    if (!result) *out = node->task->event;
    return result;
}

CALL(cuGraphEventRecordNodeGetEvent, CUgraphNode node, CUevent *out) { return event(node, NODE_RECORD_EVENT, out); }
CALL(cuGraphEventWaitNodeGetEvent, CUgraphNode node, CUevent *out) { return event(node, NODE_WAIT_EVENT, out); }

CALL(cuGraphChildGraphNodeGetGraph, CUgraphNode handle, CUgraph *out) {
    struct node *node;
    CUresult result = of_kind(handle, NODE_CHILD, out, &node);
    if (!result) *out = node->task->child;
    return result;
}
