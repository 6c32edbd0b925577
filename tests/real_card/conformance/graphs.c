/* Graphs: nodes, execution, updates, and destruction. */
#include "conformance.h"

#include <string.h>

static CUgraph new_graph(void) {
    CUgraph graph;
    NEED(cuGraphCreate, &graph, 0);
    return graph;
}

static u64 span_ns;
static void *parameters[] = {&span_ns};

static CUDA_KERNEL_NODE_PARAMS kernel_params(u64 ms) {
    span_ns = ms * 1000000; /* a node copies it when it is created */
    return (CUDA_KERNEL_NODE_PARAMS){.function = spinning(), .shape = {{1, 1, 1}, {1, 1, 1}, 0}, .params = parameters};
}

static CUgraphNode kernel_node(CUgraph graph, u64 ms, const CUgraphNode *after, size_t count) {
    CUgraphNode node;
    const CUDA_KERNEL_NODE_PARAMS params = kernel_params(ms);
    NEED(cuGraphAddKernelNode_v2, &node, graph, after, count, &params);
    return node;
}

static CUgraphNode empty_node(CUgraph graph) {
    CUgraphNode node;
    NEED(cuGraphAddEmptyNode, &node, graph, NULL, 0);
    return node;
}

static CUgraphExec instantiated(CUgraph graph) {
    CUgraphExec executable;
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
    return executable;
}

static void tell_kind(const char *fact, CUgraphNode node) {
    int kind = -1;
    NEED(cuGraphNodeGetType, node, &kind);
    tell(fact, "%d", kind);
}

static void nothing(void *data) { (void)data; }

CASE(graphs, kinds) {
    CUgraphNode node;
    CUcontext context;
    open_card();
    NEED(cuCtxGetCurrent, &context);
    const CUgraph graph = new_graph(), child = new_graph();
    tell_kind("kernel", kernel_node(graph, 1, NULL, 0));
    tell_kind("empty", empty_node(graph));
    const CUDA_HOST_NODE_PARAMS host = {nothing, NULL};
    NEED(cuGraphAddHostNode, &node, graph, NULL, 0, &host);
    tell_kind("host", node);
    const CUDA_MEMSET_NODE_PARAMS set = {
        .target = allocated(64), .pitch = 0, .value = 1, .element_bytes = 1, .width = 64, .height = 1};
    NEED(cuGraphAddMemsetNode, &node, graph, NULL, 0, &set, context);
    tell_kind("memset", node);
    NEED(cuGraphAddChildGraphNode, &node, graph, NULL, 0, child);
    tell_kind("graph", node);
    NEED(cuGraphAddEventRecordNode, &node, graph, NULL, 0, new_event(0));
    tell_kind("event_record", node);
    NEED(cuGraphAddEventWaitNode, &node, graph, NULL, 0, new_event(0));
    tell_kind("event_wait", node);
}

CASE(graphs, captured) {
    CUgraphNode nodes[8];
    size_t count = 8, roots = 0;
    open_card();
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    capture(stream, CAPTURE_GLOBAL);
    need("cuLaunchKernel", spin(stream, 1));
    NEED(cuLaunchHostFunc, stream, nothing, NULL);
    need("cuLaunchKernel", spin(stream, 1));
    const CUgraph graph = captured(stream);
    NEED(cuGraphGetNodes, graph, nodes, &count);
    tell_number("nodes", count);
    NEED(cuGraphGetRootNodes, graph, NULL, &roots);
    tell_number("roots", roots);
    TELL("stream_is_idle", cuStreamQuery, stream);
}

CASE(graphs, edges) {
    CUgraphNode node;
    open_card();
    const CUgraph graph = new_graph(), foreign = new_graph();
    const CUgraphNode one = empty_node(graph), two = empty_node(graph), other = empty_node(foreign);
    const CUgraphNode twice[] = {one, one};
    TELL("edge", cuGraphAddDependencies, graph, &one, &two, 1);
    TELL("edge_again", cuGraphAddDependencies, graph, &one, &two, 1);
    TELL("to_itself", cuGraphAddDependencies, graph, &one, &one, 1);
    TELL("to_another_graphs", cuGraphAddDependencies, graph, &one, &other, 1);
    TELL("after_one_twice", cuGraphAddEmptyNode, &node, graph, twice, 2);
    TELL("after_another_graphs", cuGraphAddEmptyNode, &node, graph, &other, 1);
    CUgraphExec executable;
    TELL("circle", cuGraphAddDependencies, graph, &two, &one, 1);
    TELL("circle_instantiated", cuGraphInstantiateWithFlags, &executable, graph, 0);
}

/* The duration of a graph: its kernels run one after the other, or beside each other. */
static float run_ms(CUgraphExec executable, CUstream stream) {
    float ms = 0;
    NEED(cuGraphLaunch, executable, stream);
    NEED(cuStreamSynchronize, stream);
    const CUevent begin = recorded(stream);
    NEED(cuGraphLaunch, executable, stream);
    const CUevent end = recorded(stream);
    NEED(cuEventSynchronize, end);
    NEED(cuEventElapsedTime, &ms, begin, end);
    return ms;
}

CASE(graphs, run) {
    open_card();
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    const CUgraph row = new_graph(), fan = new_graph();
    const CUgraphNode first = kernel_node(row, 40, NULL, 0);
    kernel_node(row, 40, &first, 1);
    kernel_node(fan, 40, NULL, 0), kernel_node(fan, 40, NULL, 0);
    tell("with_an_edge", run_ms(instantiated(row), stream) > 70 ? "one after the other" : "together");
    tell("without", run_ms(instantiated(fan), stream) > 70 ? "one after the other" : "together");
}

CASE(graphs, launched_twice) {
    float ms = 0;
    open_card();
    const CUgraph graph = new_graph();
    kernel_node(graph, 40, NULL, 0);
    const CUgraphExec executable = instantiated(graph);
    const CUstream one = new_stream(CU_STREAM_NON_BLOCKING), two = new_stream(CU_STREAM_NON_BLOCKING);
    run_ms(executable, one);
    NEED(cuGraphLaunch, executable, one);
    const CUevent middle = recorded(one);
    NEED(cuGraphLaunch, executable, two);
    const CUevent end = recorded(two);
    NEED(cuCtxSynchronize);
    NEED(cuEventElapsedTime, &ms, middle, end);
    tell("in_two_streams", ms > 30 ? "one after the other" : "together");
    TELL("empty", cuGraphLaunch, instantiated(new_graph()), one);
    TELL("null", cuGraphLaunch, NULL, one);
    TELL("afterwards", cuCtxSynchronize);
}

CASE(graphs, update) {
    CUgraphExecUpdateResultInfo info = {.result = -1};
    open_card();
    const CUgraph graph = new_graph(), longer = new_graph(), more = new_graph(), other = new_graph();
    kernel_node(graph, 1, NULL, 0), kernel_node(longer, 2, NULL, 0);
    kernel_node(more, 1, NULL, 0), kernel_node(more, 1, NULL, 0);
    empty_node(other);
    const CUgraphExec executable = instantiated(graph);
    TELL("parameters", cuGraphExecUpdate_v2, executable, longer, &info);
    tell("parameters_result", "%d", info.result);
    TELL("more_nodes", cuGraphExecUpdate_v2, executable, more, &info);
    tell("more_nodes_result", "%d", info.result);
    TELL("other_kind", cuGraphExecUpdate_v2, executable, other, &info);
    tell("other_kind_result", "%d", info.result);
    TELL("still_runs", cuGraphLaunch, executable, NULL);
    TELL("afterwards", cuCtxSynchronize);
}

CASE(graphs, clone) {
    CUgraph clone;
    CUgraphNode found = NULL;
    size_t count = 0;
    open_card();
    const CUgraph graph = new_graph();
    const CUgraphNode node = empty_node(graph);
    NEED(cuGraphClone, &clone, graph);
    NEED(cuGraphGetNodes, clone, NULL, &count);
    tell_number("nodes", count);
    NEED(cuGraphNodeFindInClone, &found, node, clone);
    tell_yes("node_is_another", found && found != node);
    const CUgraphNode later = empty_node(graph);
    TELL("find_what_came_later", cuGraphNodeFindInClone, &found, later, clone);
    NEED(cuGraphDestroyNode, node);
    NEED(cuGraphGetNodes, clone, NULL, &count);
    tell_number("nodes_after_one_of_the_original_went", count);
}

CASE(graphs, ends) {
    open_card();
    const CUgraph graph = new_graph();
    kernel_node(graph, 100, NULL, 0);
    const CUgraphExec executable = instantiated(graph);
    TELL("destroy_instantiated", cuGraphDestroy, graph);
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    NEED(cuGraphLaunch, executable, stream);
    const CUevent end = recorded(stream);
    TELL("destroy_while_it_runs", cuGraphExecDestroy, executable);
    TELL("run_goes_on", cuEventSynchronize, end);
    TELL("destroy_null", cuGraphDestroy, NULL);
    TELL("destroy_null_executable", cuGraphExecDestroy, NULL);
}

/* ---- memory of graphs -------------------------------------------------------------------------------------------- */

static u64 graph_memory(CUgraphMem_attribute which, CUdevice device) {
    u64 value = 0;
    NEED(cuDeviceGetGraphMemAttribute, device, which, &value);
    return value;
}

static CUDA_MEM_ALLOC_NODE_PARAMS memory_of(size_t bytes, CUdevice device) {
    return (CUDA_MEM_ALLOC_NODE_PARAMS){
        .pool = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}},
        .bytes = bytes};
}

CASE(graphs, memory) {
    CUgraphNode alloc, freed;
    const CUdevice device = open_card();
    const CUgraph graph = new_graph();
    CUDA_MEM_ALLOC_NODE_PARAMS params = memory_of(8 * MIB, device);
    NEED(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &params);
    tell_kind("alloc_kind", alloc);
    tell_yes("address_at_once", params.address != 0);
    TELL("free_of_nothing", cuGraphAddMemFreeNode, &freed, graph, &alloc, 1, 4711);
    NEED(cuGraphAddMemFreeNode, &freed, graph, &alloc, 1, params.address);
    tell_kind("free_kind", freed);
    CUgraphExec executable;
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
    NEED(cuGraphLaunch, executable, NULL);
    NEED(cuCtxSynchronize);
    tell_number("used_after_run", graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, device));
    tell_number("reserved_after_run", graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, device));
    NEED(cuDeviceGraphMemTrim, device);
    tell_number("reserved_after_trim", graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, device));
}

static void tell_refused(const char *fact, const char *code_fact, CUresult code) {
    tell_yes(fact, code != CUDA_SUCCESS);
    tell_cuda(code_fact, code);
}

/* A graph with memory is bound to its addresses. */
CASE(graphs, memory_binds) {
    CUgraphNode alloc, node;
    CUgraph clone;
    CUgraphExec first, second;
    const CUdevice device = open_card();
    const CUgraph graph = new_graph(), parent = new_graph();
    CUDA_MEM_ALLOC_NODE_PARAMS params = memory_of(8 * MIB, device);
    NEED(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &params);
    tell_refused("clone_is_refused", "clone", CU(cuGraphClone, &clone, graph));
    tell_refused("child_is_refused", "child", CU(cuGraphAddChildGraphNode, &node, parent, NULL, 0, graph));
    tell_refused("destroy_of_a_node_is_refused", "destroy_of_a_node", CU(cuGraphDestroyNode, alloc));
    NEED(cuGraphInstantiateWithFlags, &first, graph, 0);
    tell_refused("second_instance_is_refused", "second_instance", CU(cuGraphInstantiateWithFlags, &second, graph, 0));
    NEED(cuGraphExecDestroy, first);
    TELL("instance_after_that", cuGraphInstantiateWithFlags, &second, graph, 0);
}

CASE(graphs, memory_left_allocated) {
    CUgraphNode alloc;
    CUgraphExec executable;
    const CUdevice device = open_card();
    const CUgraph graph = new_graph();
    CUDA_MEM_ALLOC_NODE_PARAMS params = memory_of(8 * MIB, device);
    NEED(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &params);
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
    TELL("launch", cuGraphLaunch, executable, NULL);
    TELL("launch_again", cuGraphLaunch, executable, NULL);
    TELL("free_outside", cuMemFreeAsync, params.address, NULL);
    TELL("launch_then", cuGraphLaunch, executable, NULL);
    TELL("afterwards", cuCtxSynchronize);
}
