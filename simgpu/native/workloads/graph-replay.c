/* Captures a chain of kernels once and launches it as a graph again and again, as inference servers do. */
#include "common.h"

static CUgraphExec captured(CUstream stream, const struct options *options) {
    const CUfunction kernel = timed_kernel();
    CUgraph graph;
    CUgraphExec executable;
    NEED(cuStreamBeginCapture_v2, stream, 1); /* 1: only this thread's calls are judged */
    for (u64 i = 0; i < options->kernels; i++) launch(kernel, (u64)(options->kernel_us * 1e3), stream);
    NEED(cuStreamEndCapture, stream, &graph);
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
    outcome.launches = 0;
    return executable;
}

static void run(const struct options *options) {
    open_card(options->card);
    const CUstream stream = new_stream();
    const CUgraphExec graph = captured(stream, options);
    NEED(cuGraphLaunch, graph, stream); /* the module is loaded with it */
    struct marks *marks = marks_new(stream);
    marks_begin(marks);
    const double start = now_s();
    while (goes_on(options, outcome.launches, start)) {
        NEED(cuGraphLaunch, graph, stream);
        mark(marks, ++outcome.launches);
    }
    if (options->count) NEED(cuStreamSynchronize, stream);
    outcome.launches = marks_reached(marks, &outcome.wall_seconds);
    outcome.gpu_seconds = (double)(outcome.launches * options->kernels) * options->kernel_us * 1e-6;
}

const struct program program = {
    .name = "graph-replay",
    .summary = "launches a graph of kernels again and again",
    .own_options = "kernels",
    .defaults = {.seconds = 2, .kernel_us = 100, .kernels = 10},
    .run = run,
};
