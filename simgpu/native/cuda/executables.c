/* Instantiated graphs and their launches. */
#include "executables.h"

#include <stdlib.h>

enum { FLAG_UPLOAD = 2, FLAG_DEVICE_LAUNCH = 4, FLAGS = 0xf };
enum { INSTANTIATED, FAILED, INVALID_STRUCTURE };

CUresult executable_of(CUgraphExec handle, struct cuda_executable **found) {
    TRY(driver_ready());
    if (!handle || handle->magic != EXECUTABLE_MAGIC) return CUDA_ERROR_INVALID_VALUE;
    *found = handle;
    return CUDA_SUCCESS;
}

/* Parallel branches overlap; a host function ends everything before it in the list, and begins everything after it.
 */
void executable_measure(struct cuda_executable *executable) {
    u64 since = 0, length = 0;
    executable->calls_host = false;
    for (u32 i = 0; i < executable->count; i++) {
        struct step *step = &executable->steps[i];
        u64 start = since;
        for (u32 j = 0; j < step->before_count; j++) {
            u64 before = executable->steps[step->before[j]].end_ns;
            if (before > start) start = before;
        }
        const u64 duration = step->task->work.duration_ns;
        step->end_ns = duration < SIM_NEVER - start ? start + duration : SIM_NEVER;
        if (step->end_ns > length) length = step->end_ns;
        if (step->task->work.kind != NODE_HOST) continue;
        executable->calls_host = true;
        since = length;
    }
    executable->length_ns = length;
}

/* Child graphs count by their nodes. Without a current context it belongs to no device. */
static CUresult take_memory(struct cuda_executable *executable) {
    struct cuda_context *context;
    u64 nodes = 0;
    if (context_current(&context)) return CUDA_SUCCESS;
    for (u32 i = 0; i < executable->count; i++) nodes += executable->steps[i].task->work.kind != NODE_CHILD;
    return growth_new(context, SIM_EXECUTABLE, nodes * context->device->about->model.graph_node, &executable->growth);
}

static CUresult instantiate(CUgraphExec *made, CUgraph handle, u64 flags, CUgraphNode *failed) {
    struct cuda_graph *graph;
    TRY(graph_of(handle, &graph));
    if (failed) *failed = NULL;
    if (!made || flags & ~(u64)FLAGS) return CUDA_ERROR_INVALID_VALUE;
    if (flags & FLAG_DEVICE_LAUNCH) return CUDA_ERROR_NOT_SUPPORTED;
    if (graph->instance) return CUDA_ERROR_INVALID_VALUE;
    struct cuda_executable *executable = calloc(1, sizeof *executable);
    if (!executable) return CUDA_ERROR_OUT_OF_MEMORY;
    *executable = (struct cuda_executable){.magic = EXECUTABLE_MAGIC};
    pthread_mutex_init(&executable->lock, NULL);
    CUresult result = steps_of(graph, &executable->steps, &executable->count);
    if (!result) result = take_memory(executable);
    if (!result) result = graph_clone(graph, &executable->graph);
    if (result) {
        growth_drop(&executable->growth);
        steps_drop(executable->steps, executable->count);
        free(executable);
        return result;
    }
    executable_measure(executable);
    if (graph_has_memory(graph)) {
        executable->made_from = graph;
        graph->instance = &executable->made_from;
    }
    *made = executable;
    return CUDA_SUCCESS;
}

CALL(cuGraphInstantiate, CUgraphExec *made, CUgraph graph, CUgraphNode *failed, char *log, size_t log_bytes) {
    if (log && log_bytes) *log = 0;
    return instantiate(made, graph, 0, failed);
}
CALL(cuGraphInstantiate_v2, CUgraphExec *made, CUgraph graph, CUgraphNode *failed, char *log, size_t log_bytes) {
    if (log && log_bytes) *log = 0;
    return instantiate(made, graph, 0, failed);
}
CALL(cuGraphInstantiateWithFlags, CUgraphExec *made, CUgraph graph, unsigned long long flags) {
    return instantiate(made, graph, flags, NULL);
}

static CUresult with_params(CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params, bool per_thread) {
    CUresult result = driver_ready();
    if (result) return result;
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    struct cuda_stream *stream;
    params->result = FAILED;
    if (params->flags & FLAG_UPLOAD) result = stream_of(params->upload, per_thread, &stream);
    if (!result) result = instantiate(made, graph, params->flags, &params->failed);
    params->result = !result ? INSTANTIATED : result == CUDA_ERROR_INVALID_VALUE ? INVALID_STRUCTURE : FAILED;
    return result;
}

CALL_TWICE(cuGraphInstantiateWithParams, _ptsz, with_params(made, graph, params, per_thread), CUgraphExec *made,
           CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)

CALL(cuGraphExecDestroy, CUgraphExec handle) {
    struct cuda_executable *executable;
    TRY(executable_of(handle, &executable));
    executable->magic = 0;
    if (executable->made_from) executable->made_from->instance = NULL;
    steps_drop(executable->steps, executable->count);
    graph_drop(executable->graph);
    growth_drop(&executable->growth);
    free(executable);
    return CUDA_SUCCESS;
}

/* ---- launching --------------------------------------------------------------------------------------------------- */

/* The real effects of the steps happen when the graph is launched, in order: code is loaded, memory taken and moved. */
static CUresult run_steps(struct cuda_executable *executable, struct cuda_stream *stream) {
    CUresult result = CUDA_SUCCESS;
    for (u32 i = 0; i < executable->count && !result; i++) {
        const struct step *step = &executable->steps[i];
        const struct work *work = &step->task->work;
        if (work->kind == NODE_KERNEL)
            result = function_load(step->task->function, stream->context);
        else if (work->run)
            result = work->run(work->argument);
    }
    return result;
}

/* Before the first step: waits for the events of the graph, and for the previous launch. */
static CUresult wait_first(struct cuda_executable *executable, struct cuda_stream *stream) {
    CUresult result = CUDA_SUCCESS;
    if (executable->device == stream->context->device) {
        pthread_mutex_lock(&stream->lock);
        stream_delay(stream, executable->tail);
        pthread_mutex_unlock(&stream->lock);
    } else if (executable->device) {
        result = device_wait(executable->device, executable->tail);
    }
    for (u32 i = 0; i < executable->count && !result; i++) {
        const struct step *step = &executable->steps[i];
        if (step->task->work.kind == NODE_WAIT_EVENT) result = stream_wait(stream, step->task->event);
    }
    return result;
}

/* Parts between host functions run one after the other; events are recorded at the end of their part. */
static CUresult launch_parts(struct cuda_executable *executable, struct cuda_stream *stream) {
    u64 done = 0, length = 0;
    CUresult result = CUDA_SUCCESS;
    for (u32 i = 0; i < executable->count && !result; i++) {
        const struct step *step = &executable->steps[i];
        if (step->end_ns > length) length = step->end_ns;
        enum node_kind kind = step->task->work.kind;
        if (kind != NODE_HOST && kind != NODE_RECORD_EVENT) continue;
        result = stream_enqueue(stream, length - done, NULL);
        done = length;
        if (!result && kind == NODE_HOST)
            result = stream_call(stream, step->task->call, step->task->data);
        else if (!result)
            result = event_record(step->task->event, stream);
    }
    return result ? result : stream_enqueue(stream, executable->length_ns - done, NULL);
}

/* The usual case: a single piece of work, with each event at its exact position. */
static CUresult launch_whole(struct cuda_executable *executable, struct cuda_stream *stream) {
    u64 end;
    TRY(stream_enqueue(stream, executable->length_ns, &end));
    for (u32 i = 0; i < executable->count; i++) {
        const struct step *step = &executable->steps[i];
        if (step->task->work.kind == NODE_RECORD_EVENT)
            event_set(step->task->event, stream->context->device, end - (executable->length_ns - step->end_ns));
    }
    executable->device = stream->context->device;
    executable->tail = end;
    return CUDA_SUCCESS;
}

static CUresult launch_now(struct cuda_executable *executable, struct cuda_stream *stream) {
    HOLD(executable->lock);
    CUresult result = run_steps(executable, stream);
    if (!result) result = wait_first(executable, stream);
    bool in_parts = executable->calls_host || stream_holds(stream);
    if (!result) result = in_parts ? launch_parts(executable, stream) : launch_whole(executable, stream);
    return result;
}

static CUresult launch(CUgraphExec handle, CUstream in, bool per_thread) {
    struct cuda_executable *executable;
    struct cuda_stream *stream;
    bool capturing;
    TRY(executable_of(handle, &executable));
    TRY(stream_of(in, per_thread, &stream));
    TRY(stream_begin(stream, &capturing));
    return capturing ? capture_child(stream, executable->graph) : launch_now(executable, stream);
}

CALL_TWICE(cuGraphLaunch, _ptsz, launch(executable, stream, per_thread), CUgraphExec executable, CUstream stream)

/* An upload brings only code to the card. */
static CUresult upload(CUgraphExec handle, CUstream in, bool per_thread) {
    struct cuda_executable *executable;
    struct cuda_stream *stream;
    CUresult result = executable_of(handle, &executable);
    return result ? result : stream_of(in, per_thread, &stream);
}

CALL_TWICE(cuGraphUpload, _ptsz, upload(executable, stream, per_thread), CUgraphExec executable, CUstream stream)
