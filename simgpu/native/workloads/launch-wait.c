/* Launches one kernel at a time and waits for it, as a program does that looks at each result. */
#include "common.h"

static void run(const struct options *options) {
    open_card(options->card);
    const CUstream stream = new_stream();
    const CUfunction kernel = timed_kernel();
    const u64 duration_ns = (u64)(options->kernel_us * 1e3);
    launch(kernel, 0, stream); /* the module is loaded with it */
    NEED(cuStreamSynchronize, stream);
    outcome.launches = 0;
    const double start = now_s();
    while (goes_on(options, outcome.launches, start)) {
        launch(kernel, duration_ns, stream);
        NEED(cuStreamSynchronize, stream);
        outcome.wall_seconds = now_s() - start;
        outcome.gpu_seconds = (double)(outcome.launches * duration_ns) * 1e-9;
    }
}

const struct program program = {
    .name = "launch-wait",
    .summary = "launches one kernel at a time and waits for it",
    .own_options = "",
    .defaults = {.seconds = 2, .kernel_us = 1000},
    .run = run,
};
