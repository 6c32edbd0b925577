/* Launches one kernel at a time and waits for it, like a program that inspects each result. */
#include "common.h"

static void run(const struct options *options) {
    const struct work work = work_begin(options);
    NEED(cuStreamSynchronize, work.stream);
    const double start = now_s();
    while (goes_on(options, outcome.launches, start)) {
        launch(&work, work.duration_ns);
        NEED(cuStreamSynchronize, work.stream);
        outcome.wall_seconds = now_s() - start;
        outcome.gpu_seconds = (double)(outcome.launches * work.duration_ns) * 1e-9;
    }
}

const struct program program = {
    .name = "launch-wait",
    .summary = "launches one kernel at a time and waits for it",
    .own_options = "",
    .defaults = {.seconds = 2, .kernel_us = 1000},
    .run = run,
};
