/* Measures what a non-blocking launch costs its thread, compared with one clock read. */
#include "common.h"

#include <time.h>

enum { BATCH = 1000 }; /* fewer than a queue holds */

static double clock_cost_ns(u64 reads) {
    struct timespec t;
    const double begun = cpu_s();
    for (u64 i = 0; i < reads; i++) clock_gettime(CLOCK_MONOTONIC, &t);
    return (cpu_s() - begun) * 1e9 / (double)reads;
}

static void run(const struct options *options) {
    const struct work work = work_begin(options);
    const double start = now_s();
    double launching_s = 0;
    while (goes_on(options, outcome.launches, start)) {
        NEED(cuStreamSynchronize, work.stream);
        const double begun = cpu_s();
        for (int i = 0; i < BATCH; i++) launch(&work, work.duration_ns);
        launching_s += cpu_s() - begun;
    }
    NEED(cuStreamSynchronize, work.stream);
    outcome.wall_seconds = now_s() - start;
    outcome.gpu_seconds = (double)(outcome.launches * work.duration_ns) * 1e-9;
    also(",\"launch_ns\":%.2f,\"clock_ns\":%.2f", launching_s * 1e9 / (double)outcome.launches,
         clock_cost_ns(outcome.launches));
}

const struct program program = {
    .name = "launch-cost",
    .summary = "measures what a launch costs its thread",
    .own_options = "",
    .defaults = {.count = 1000000, .kernel_us = 1},
    .run = run,
};
