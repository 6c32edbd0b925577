/* Launches short, medium and long kernels without ever waiting, like training with an occasional optimizer step. */
#include "common.h"

enum { LENGTHS = 3 };
static const u64 lengths_ns[LENGTHS] = {10 * 1000, 1000 * 1000, 30 * 1000 * 1000};

static void run(const struct options *options) {
    const struct work work = work_begin(options);
    u64 state = options->seed;
    const double start = now_s();
    while (goes_on(options, outcome.launches, start)) {
        const u64 duration_ns = lengths_ns[next_random(&state) % LENGTHS]; /* equally many of each */
        launch(&work, duration_ns);
        outcome.gpu_seconds += (double)duration_ns * 1e-9;
    }
    NEED(cuStreamSynchronize, work.stream);
    outcome.wall_seconds = now_s() - start;
}

const struct program program = {
    .name = "mixed",
    .summary = "launches kernels of 10 us, 1 ms and 30 ms without ever waiting",
    .own_options = "seed",
    .defaults = {.seconds = 2, .seed = 1},
    .run = run,
};
