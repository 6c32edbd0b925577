/* Measures the library's cost to a program that launches, over a driver that does nothing:
 *
 *   launching KIND DRIVER THREADS ROUNDS EACH
 *
 *   kernel   cuLaunchKernel into a stream of the thread's own
 *   wide     the same with cuLaunchKernelEx
 *   cards    the same, alternating between two cards, each made current before
 *   graph    cuGraphLaunch
 *
 * Ends with a line of JSON with the means of EACH calls of every round, in nanoseconds of the thread's own time: of the
 * driver itself and of the same calls through the library found as libcuda.so.1, in turns. DRIVER is a path of the
 * driver under another name.
 */
#include "calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIDES = 2, DRIVER = 0, CALLED = 1, CARDS = 2, MOST_THREADS = 64 };

struct side {
    __typeof__(cuCtxSetCurrent) *current;
    __typeof__(cuLaunchKernel) *kernel;
    __typeof__(cuLaunchKernelEx) *wide;
    __typeof__(cuGraphLaunch) *graph;
};

/* A thread, and the target of its launches. */
struct worker {
    pthread_t thread;
    CUstream streams[CARDS];
    double (*means)[SIDES];
};

static struct side side[SIDES];
static CUcontext contexts[CARDS];
static CUgraphExec executable;
static unsigned rounds, each, threads;
static pthread_barrier_t together;

/* ---- ways to launch: EACH times, any error of them -------------------------------------------------------------- */

static CUresult kernels(const struct side *one, const struct worker *worker) {
    CUresult wrong = 0;
    for (unsigned i = 0; i < each; i++) wrong |= one->kernel(NULL, 1, 1, 1, 1, 1, 1, 0, worker->streams[0], NULL, NULL);
    return wrong;
}

static CUresult wide_ones(const struct side *one, const struct worker *worker) {
    const CUlaunchConfig config = {.shape = {{1, 1, 1}, {1, 1, 1}, 0}, .stream = worker->streams[0]};
    CUresult wrong = 0;
    for (unsigned i = 0; i < each; i++) wrong |= one->wide(&config, NULL, NULL, NULL);
    return wrong;
}

static CUresult on_cards(const struct side *one, const struct worker *worker) {
    CUresult wrong = 0;
    for (unsigned i = 0; i < each; i++) {
        wrong |= one->current(contexts[i % CARDS]);
        wrong |= one->kernel(NULL, 1, 1, 1, 1, 1, 1, 0, worker->streams[i % CARDS], NULL, NULL);
    }
    return wrong;
}

static CUresult graphs(const struct side *one, const struct worker *worker) {
    CUresult wrong = 0;
    for (unsigned i = 0; i < each; i++) wrong |= one->graph(executable, worker->streams[0]);
    return wrong;
}

static const struct kind {
    const char *name;
    CUresult (*launch)(const struct side *one, const struct worker *worker);
} kinds[] = {{"kernel", kernels}, {"wide", wide_ones}, {"cards", on_cards}, {"graph", graphs}}, *kind;

static unsigned cards(void) { return kind->launch == on_cards ? CARDS : 1; }

/* ---- measuring -------------------------------------------------------------------------------------------------- */

/* Of this thread: others on the same processor cost it nothing. */
static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double launch_round(const struct side *one, const struct worker *worker) {
    const double start = now_ns();
    const CUresult wrong = kind->launch(one, worker);
    const double took = (now_ns() - start) / (double)each;
    require(wrong, kind->name);
    return took;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    for (unsigned card = cards(); card-- > 0;) {
        NEED(cuCtxSetCurrent, contexts[card]);
        NEED(cuStreamCreate, &worker->streams[card], 0);
    }
    for (unsigned which = 0; which < SIDES; which++) launch_round(&side[which], worker);
    pthread_barrier_wait(&together);
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned turn = 0; turn < SIDES; turn++) {
            const unsigned which = (round + turn) % SIDES;
            worker->means[round][which] = launch_round(&side[which], worker);
        }
    return NULL;
}

static void tell(const struct worker *workers, unsigned which) {
    printf("\"launch_%s\":[", which == DRIVER ? "driver" : "called");
    for (unsigned n = 0; n < threads * rounds; n++)
        printf("%s%.2f", n ? "," : "", workers[n / rounds].means[n % rounds][which]);
    printf("]");
}

/* ---- beginning -------------------------------------------------------------------------------------------------- */

static void find_sides(const char *path) {
    const char *paths[SIDES] = {path, "libcuda.so.1"};
    for (int which = SIDES - 1; which >= 0; which--) {
        void *library = dlopen(paths[which], RTLD_NOW | RTLD_LOCAL);
        *(void **)&side[which].current = found(library, "cuCtxSetCurrent");
        *(void **)&side[which].kernel = found(library, "cuLaunchKernel");
        *(void **)&side[which].wide = found(library, "cuLaunchKernelEx");
        *(void **)&side[which].graph = found(library, "cuGraphLaunch");
    }
}

/* As in measure.c: its runner checks the setup, and writes a line. */
static void begin(void) {
    size_t unused, total;
    calls_find();
    NEED(cuInit, 0);
    for (unsigned card = 0; card < cards(); card++) {
        NEED(cuDevicePrimaryCtxRetain, &contexts[card], card);
        NEED(cuCtxSetCurrent, contexts[card]);
        NEED(cuMemGetInfo_v2, &unused, &total);
    }
    NEED(cuGraphInstantiateWithFlags, &executable, NULL, 0);
    printf("{\"total\":%zu,\"pid\":%d,\"interposed\":%s}\n", total, (int)getpid(),
           side[DRIVER].kernel != side[CALLED].kernel ? "true" : "false");
    fflush(stdout);
    while (getchar() != '\n') continue;
}

int main(int count, char **words) {
    static struct worker workers[MOST_THREADS];
    if (count != 6) stop_with("launching: see its first comment");
    for (unsigned n = 0; n < sizeof kinds / sizeof *kinds; n++)
        if (!strcmp(words[1], kinds[n].name)) kind = &kinds[n];
    if (!kind) stop_with("launching: %s is no way to launch", words[1]);
    threads = (unsigned)number(words[3], MOST_THREADS), rounds = (unsigned)number(words[4], 100000);
    each = (unsigned)number(words[5], 10 * MIB);
    find_sides(words[2]);
    begin();
    pthread_barrier_init(&together, NULL, threads);
    for (unsigned n = 0; n < threads; n++) {
        workers[n].means = calloc(rounds, sizeof *workers[n].means);
        if (!workers[n].means) stop_with("no memory");
        pthread_create(&workers[n].thread, NULL, work, &workers[n]);
    }
    for (unsigned n = 0; n < threads; n++) pthread_join(workers[n].thread, NULL);
    printf("{");
    tell(workers, DRIVER);
    printf(",");
    tell(workers, CALLED);
    printf("}\n");
    return 0;
}
