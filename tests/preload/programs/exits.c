/* Exits without waiting while the card has work of the program:
 *
 *     exits WAY
 *
 * return   main returns
 * exit     main calls exit
 * quick    main calls _exit
 * thread   another thread that launched calls exit
 * last     main ends its thread, and another thread that launched remains and calls exit
 * busy     main returns while another thread launches on
 *
 * A line of JSON has the card's memory as the program sees it.
 */
#include "calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHORT_NS = 100000, LONG_NS = 20000000, SOME = 20, LINGERS_US = 20000 };

static CUcontext context;
static CUfunction kernel;
static CUstream stream;

/* Registered before the driver's handler, and so run after it: there is time to call a driver that has shut itself
   down. */
static void linger(void) { usleep(LINGERS_US); }

static CUresult launch(CUstream into, u64 ns) { return launch_for(kernel, into, ns); }

static void begin(void) {
    context = open_card();
    kernel = kernel_here();
    stream = new_stream(CU_STREAM_NON_BLOCKING);
}

/* Into a stream, into the per-thread stream, and by a graph. */
static void work(void) {
    CUgraph graph;
    CUgraphExec executable;
    NEED(cuStreamBeginCapture_v2, stream, CAPTURE_RELAXED);
    require(launch(stream, SHORT_NS), "a captured launch");
    NEED(cuStreamEndCapture, stream, &graph);
    NEED(cuGraphInstantiateWithFlags, &executable, graph, 0);
    for (int n = 0; n < SOME; n++) {
        require(launch(stream, SHORT_NS), "a launch");
        require(launch(CU_STREAM_PER_THREAD, SHORT_NS), "a launch");
        NEED(cuGraphLaunch, executable, stream);
    }
}

/* On a slow machine the work may be done when it is queried: then launch again. */
static void leave_work(void) {
    do require(launch(stream, LONG_NS), "the last launch");
    while (driver.cuStreamQuery(stream) != CUDA_ERROR_NOT_READY);
}

static void tell(void) {
    size_t unused, total;
    NEED(cuMemGetInfo_v2, &unused, &total);
    printf("{\"total\":%zu}\n", total);
    fflush(stdout);
    leave_work();
}

/* ---- ways ----------------------------------------------------------------------------------------------------------
 */

static void do_nothing(void) {}

static void call_exit(void) { exit(0); }

static void call_quick_exit(void) { _exit(0); }

static void *end_all(void *unused) {
    NEED(cuCtxSetCurrent, context);
    work();
    tell();
    exit(0);
    return unused;
}

/* By then the driver may have shut itself down, and returns that error. */
static void *launch_on(void *unused) {
    driver.cuCtxSetCurrent(context);
    for (;;) launch(CU_STREAM_PER_THREAD, SHORT_NS);
    return unused;
}

static void wait_for_end(void) {
    pthread_t other;
    pthread_create(&other, NULL, end_all, NULL);
    pthread_join(other, NULL);
}

static void end_first(void) {
    pthread_t other;
    pthread_create(&other, NULL, end_all, NULL);
    pthread_exit(NULL);
}

static void leave_one_launching(void) {
    pthread_t other;
    pthread_create(&other, NULL, launch_on, NULL);
    work();
}

static const struct way {
    const char *name;
    bool works_here; /* main launches, and reports */
    void (*end)(void);
} ways[] = {
    {"return", true, do_nothing},    {"exit", true, call_exit},  {"quick", true, call_quick_exit},
    {"thread", false, wait_for_end}, {"last", false, end_first}, {"busy", true, leave_one_launching},
};

int main(int count, char **words) {
    const struct way *way = NULL;
    for (size_t n = 0; n < sizeof ways / sizeof *ways; n++)
        if (count == 2 && !strcmp(ways[n].name, words[1])) way = &ways[n];
    if (!way) stop_with("exits: see its first comment");
    atexit(linger);
    begin();
    if (way->works_here) {
        work();
        tell();
    }
    way->end();
    return 0;
}
