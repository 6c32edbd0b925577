/* Launches without ever waiting: the queue is always full, as in training. */
#include "common.h"

static void run(const struct options *options) {
    open_card(options->card);
    const CUstream stream = new_stream();
    const CUfunction kernel = timed_kernel();
    const u64 duration_ns = (u64)(options->kernel_us * 1e3);
    launch(kernel, 0, stream); /* the module is loaded with it */
    outcome.launches = 0;
    struct marks *marks = marks_new(stream);
    marks_begin(marks);
    const double start = now_s();
    while (goes_on(options, outcome.launches, start)) {
        launch(kernel, duration_ns, stream);
        mark(marks, outcome.launches);
    }
    /* A count is to be done, seconds are a window: what is queued beyond it does not count. */
    if (options->count) NEED(cuStreamSynchronize, stream);
    outcome.launches = marks_reached(marks, &outcome.wall_seconds);
    outcome.gpu_seconds = (double)(outcome.launches * duration_ns) * 1e-9;
}

const struct program program = {
    .name = "flood",
    .summary = "launches kernels without ever waiting",
    .own_options = "",
    .defaults = {.seconds = 2, .kernel_us = 1000},
    .run = run,
};
