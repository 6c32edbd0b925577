/* Captures a chain of kernels once and launches it repeatedly as a graph, as inference servers do. */
#include "common.h"

static CUgraphExec captured(const struct work *work, u64 kernels) {
    CUgraph graph;
    CUgraphExec executable;
    NEED(cuStreamBeginCapture_v2, work->stream, 1); /* 1: restricts only this thread's calls */
    for (u64 i = 0; i < kernels; i++) launch(work, work->duration_ns);
    NEED(cuStreamEndCapture, work->stream, &graph);
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
    outcome.launches = 0;
    return executable;
}

static void run(const struct options *options) {
    const struct work work = work_begin(options);
    const CUgraphExec graph = captured(&work, options->kernels);
    struct marks *marks = marks_new(work.stream);
    marks_begin(marks);
    const double start = now_s();
    while (goes_on(options, outcome.launches, start)) {
        NEED(cuGraphLaunch, graph, work.stream);
        mark(marks, ++outcome.launches);
    }
    if (options->count) NEED(cuStreamSynchronize, work.stream);
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
