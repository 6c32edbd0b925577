/* Requests that arrive at a fixed rate, regardless of whether earlier ones were answered; measures how long each
 * takes. */
#include "common.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(const double *sorted, u64 count, double part) {
    return count ? sorted[(u64)(part * (double)(count - 1) + 0.5)] : 0;
}

static void tell_times(double *took_ms, u64 count) {
    qsort(took_ms, count, sizeof *took_ms, ascending);
    also(",\"requests\":%llu,\"p50_ms\":%.6f,\"p99_ms\":%.6f,\"max_ms\":%.6f", (unsigned long long)count,
         percentile(took_ms, count, .5), percentile(took_ms, count, .99), percentile(took_ms, count, 1));
}

static void run(const struct options *options) {
    if (!(options->rate > 0)) stop_with("--rate: must be more than 0");
    const struct work work = work_begin(options);
    const u64 most = options->count ? options->count : (u64)(options->rate * options->seconds) + 1;
    double *took_ms = calloc(most, sizeof *took_ms);
    if (!took_ms) stop_with("no memory for %llu times", (unsigned long long)most);
    NEED(cuStreamSynchronize, work.stream);
    u64 done = 0;
    const double start = now_s();
    while (done < most && goes_on(options, done, start)) {
        const double came = start + (double)done / options->rate;
        sleep_until(came);
        for (u64 i = 0; i < options->kernels; i++) launch(&work, work.duration_ns);
        NEED(cuStreamSynchronize, work.stream);
        took_ms[done++] = (now_s() - came) * 1e3;
    }
    outcome.wall_seconds = now_s() - start;
    outcome.gpu_seconds = (double)(outcome.launches * work.duration_ns) * 1e-9;
    tell_times(took_ms, done);
    free(took_ms);
}

const struct program program = {
    .name = "inference",
    .summary = "answers requests that come at a rate, and tells how long they took",
    .own_options = "rate kernels",
    .defaults = {.seconds = 2, .kernel_us = 300, .kernels = 20, .rate = 30},
    .run = run,
};
