/* Launches short, middling and long kernels without ever waiting: a program with an optimizer's step now and then. */
#include "common.h"

enum { LENGTHS = 3 };
static const u64 lengths_ns[LENGTHS] = {10 * 1000, 1000 * 1000, 30 * 1000 * 1000};

/* As many of each length; a generator (splitmix64) says in which order, the same for the same seed. */
static u64 chosen(u64 *state) {
    u64 mixed = *state += 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
    return lengths_ns[(mixed ^ mixed >> 31) % LENGTHS];
}

static void run(const struct options *options) {
    open_card(options->card);
    const CUstream stream = new_stream();
    const CUfunction kernel = timed_kernel();
    u64 state = options->seed;
    launch(kernel, 0, stream); /* the module is loaded with it */
    outcome.launches = 0;
    const double start = now_s();
    while (goes_on(options, outcome.launches, start)) {
        const u64 duration_ns = chosen(&state);
        launch(kernel, duration_ns, stream);
        outcome.gpu_seconds += (double)duration_ns * 1e-9;
    }
    NEED(cuStreamSynchronize, stream);
    outcome.wall_seconds = now_s() - start;
}

const struct program program = {
    .name = "mixed",
    .summary = "launches kernels of 10 us, 1 ms and 30 ms without ever waiting",
    .own_options = "seed",
    .defaults = {.seconds = 2, .seed = 1},
    .run = run,
};
