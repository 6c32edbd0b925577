/* Launches without ever waiting: the queue is always full, as in training. With `--mib` it also holds that much
 * memory. */
#include "common.h"

enum { PART_MIB = 256, MIB = 1 << 20 };

static void hold(u64 mib) {
    for (u64 left = mib; left; left -= left < PART_MIB ? left : PART_MIB) {
        CUdeviceptr address;
        NEED(cuMemAlloc_v2, &address, (left < PART_MIB ? left : PART_MIB) * MIB);
    }
}

static void run(const struct options *options) {
    const struct work work = work_begin(options);
    hold(options->mib);
    struct marks *marks = marks_new(work.stream);
    marks_begin(marks);
    const double start = now_s();
    while (goes_on(options, outcome.launches, start)) {
        launch(&work, work.duration_ns);
        mark(marks, outcome.launches);
    }
    /* With a count all launches are completed; seconds define a window, and what is queued beyond it is not counted. */
    if (options->count) NEED(cuStreamSynchronize, work.stream);
    outcome.launches = marks_reached(marks, &outcome.wall_seconds);
    outcome.gpu_seconds = (double)(outcome.launches * work.duration_ns) * 1e-9;
}

const struct program program = {
    .name = "flood",
    .summary = "launches kernels without ever waiting",
    .own_options = "mib",
    .defaults = {.seconds = 2, .kernel_us = 1000},
    .run = run,
};
