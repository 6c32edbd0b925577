/* Floods a card with kernels of a millisecond, in a way that bypasses a time slice unless that is prevented:
 *
 *     ways --seconds SECONDS WAY [DRIVER]
 *
 * ordinary   no bypass
 * path       the driver is opened by its file's path DRIVER
 * past       the context is created by the driver itself, loaded as DRIVER
 * open       a stream captures, and continues to
 * leaked     a stream was destroyed while it captured
 * blocking   a launch returns when it is done
 * green      green contexts are destroyed whose streams have work
 * updated    a graph is short until its duration has been measured, and then long
 *
 * A line of JSON has whether the bypass was applied, and the card's memory as the program sees it.
 */
#include "calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SHORT_NS = 10000, LONG_NS = 1000000, OFTEN = 50, BELIEVED = 500 };
enum { TIL_ALL_IS_MADE_US = 200000 }; /* by then a library has done all its periodic work */

static CUcontext context;
static CUfunction kernel;
static bool is_taken;
static const char *path;

static void launch_of(CUfunction function, CUstream stream, u64 ns) {
    require(launch_for(function, stream, ns), "a launch");
}

static void launch(CUstream stream, u64 ns) { launch_of(kernel, stream, ns); }

/* ---- before the driver is used, and making the context ----------------------------------------------------------- */

static void by_path(void) {
    calls_find_in(path);
    is_taken = *path == '/';
}

static void blocking(void) {
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    calls_find();
}

static void retain(void) { NEED(cuDevicePrimaryCtxRetain, &context, 0); }

static void retain_past(void) {
    void *itself = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    __typeof__(driver.cuDevicePrimaryCtxRetain) own = found(itself, "cuDevicePrimaryCtxRetain");
    require(own(&context, 0), "the driver's own cuDevicePrimaryCtxRetain");
    is_taken = own != driver.cuDevicePrimaryCtxRetain;
}

/* ---- before the flood ----------------------------------------------------------------------------------------------
 */

static void nothing(void) { is_taken = true; }

static void as_before(void) {}

static CUstream capturing(void) {
    CUstreamCaptureStatus status;
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    NEED(cuStreamBeginCapture_v2, stream, CAPTURE_RELAXED);
    NEED(cuStreamIsCapturing, stream, &status);
    is_taken = status == CAPTURE_ACTIVE;
    return stream;
}

static void begin_capture(void) { capturing(); }

static void leak_capture(void) { NEED(cuStreamDestroy_v2, capturing()); }

static void see_whether_it_blocks(void) {
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    launch(stream, LONG_NS);
    is_taken = driver.cuStreamQuery(stream) == CUDA_SUCCESS;
}

/* The graphs between which an executable is updated. */
static CUgraph graphs[2];
static CUgraphExec executable;

static CUgraph graph_of(u64 ns) {
    CUgraph graph;
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    NEED(cuStreamBeginCapture_v2, stream, CAPTURE_RELAXED);
    launch(stream, ns);
    NEED(cuStreamEndCapture, stream, &graph);
    return graph;
}

static void make_graphs(void) {
    graphs[0] = graph_of(SHORT_NS);
    graphs[1] = graph_of(LONG_NS);
    NEED(cuGraphInstantiateWithFlags, &executable, graphs[0], 0);
}

/* ---- the flood -----------------------------------------------------------------------------------------------------
 */

static void launch_some(void) {
    for (int n = 0; n < OFTEN; n++) launch(CU_STREAM_LEGACY, LONG_NS);
}

static void leave_green_work(void) {
    static const int all_of_it = 1;
    CUgreenCtx green;
    CUcontext current;
    CUstream stream;
    NEED(cuGreenCtxCreate, &green, &all_of_it, 0, 1);
    NEED(cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING, 0);
    NEED(cuCtxFromGreenCtx, &current, green);
    NEED(cuCtxSetCurrent, current);
    const CUfunction here = kernel_here();
    launch_of(here, stream, LONG_NS);
    launch_of(here, stream, LONG_NS);
    is_taken = driver.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
    NEED(cuGreenCtxDestroy, green);
    NEED(cuCtxSetCurrent, context);
    launch_some();
}

static void exchange(CUgraph graph) {
    CUgraphExecUpdateResultInfo why;
    NEED(cuGraphExecUpdate_v2, executable, graph, &why);
}

static void launch_graphs(CUstream stream, int count) {
    for (int n = 0; n < count; n++) NEED(cuGraphLaunch, executable, stream);
}

/* By the card's own account. */
static bool is_long(CUstream stream) {
    CUevent from, to;
    float ms;
    NEED(cuEventCreate, &from, 0);
    NEED(cuEventCreate, &to, 0);
    NEED(cuEventRecord, from, stream);
    launch_graphs(stream, 1);
    NEED(cuEventRecord, to, stream);
    NEED(cuEventSynchronize, to);
    NEED(cuEventElapsedTime, &ms, from, to);
    return ms * 1e6f > LONG_NS / 2;
}

static void update(void) {
    static CUstream stream;
    if (!stream) stream = new_stream(CU_STREAM_NON_BLOCKING);
    exchange(graphs[0]);
    launch_graphs(stream, BELIEVED);
    exchange(graphs[1]);
    launch_graphs(stream, OFTEN);
    if (!is_taken) is_taken = is_long(stream);
}

/* ---- all of them ---------------------------------------------------------------------------------------------------
 */

static const struct way {
    const char *name;
    void (*find)(void), (*retain)(void), (*prepare)(void), (*flood)(void);
} ways[] = {
    {"ordinary", calls_find, retain, nothing, launch_some},
    {"path", by_path, retain, as_before, launch_some},
    {"past", calls_find, retain_past, as_before, launch_some},
    {"open", calls_find, retain, begin_capture, launch_some},
    {"leaked", calls_find, retain, leak_capture, launch_some},
    {"blocking", blocking, retain, see_whether_it_blocks, launch_some},
    {"green", calls_find, retain, as_before, leave_green_work},
    {"updated", calls_find, retain, make_graphs, update},
};

static const struct way *way_named(const char *name) {
    for (size_t n = 0; n < sizeof ways / sizeof *ways; n++)
        if (!strcmp(ways[n].name, name)) return &ways[n];
    stop_with("ways: there is no way %s", name);
}

static void begin(const struct way *way) {
    way->find();
    NEED(cuInit, 0);
    usleep(TIL_ALL_IS_MADE_US);
    way->retain();
    NEED(cuCtxSetCurrent, context);
    kernel = kernel_here();
    way->prepare();
}

int main(int count, char **words) {
    size_t unused, total;
    if (count < 4) stop_with("ways: see its first comment");
    const time_t end = time(NULL) + (time_t)number(words[2], 1 << 20);
    path = count > 4 ? words[4] : "";
    const struct way *way = way_named(words[3]);
    begin(way);
    way->flood();
    NEED(cuMemGetInfo_v2, &unused, &total);
    printf("{\"taken\":%s,\"total\":%zu}\n", is_taken ? "true" : "false", total);
    fflush(stdout);
    while (time(NULL) < end) way->flood();
    return 0;
}
