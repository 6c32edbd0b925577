/* Stream capture: forbidden calls, and their effect on the capture. Each question has its own capture. */
#include "conformance.h"

#include <stdio.h>

static CUstream s, other; /* the capturing stream, which waits for the legacy one, and one that does not */
static CUevent before; /* recorded in `other` before the capture began */
static CUevent inside; /* recorded in the capture */

static void tell_status(const char *fact) {
    static const char *const names[] = {"not capturing", "active", "invalidated"};
    CUstreamCaptureStatus status = CAPTURE_NONE;
    char longer[96];
    snprintf(longer, sizeof longer, "%s_leaves_it", fact);
    const CUresult code = CU(cuStreamIsCapturing, s, &status);
    if (code)
        tell_cuda(longer, code);
    else
        tell(longer, "%s", names[status]);
}

static void begin(CUstreamCaptureMode mode) {
    s = new_stream(0);
    other = new_stream(CU_STREAM_NON_BLOCKING);
    before = recorded(other);
    inside = new_event(0);
    capture(s, mode);
    need("cuLaunchKernel", spin(s, 0));
    NEED(cuEventRecord, inside, s);
}

static void end(void) {
    CUgraph graph;
    CU(cuStreamEndCapture, s, &graph);
}

/* One question in one capture. */
#define FORBIDDEN(fact, name, ...)                                                                                     \
    do {                                                                                                               \
        begin(CAPTURE_GLOBAL);                                                                                         \
        TELL(fact, name, __VA_ARGS__);                                                                                 \
        tell_status(fact);                                                                                             \
        end();                                                                                                         \
    } while (0)

static void nothing(void *data) { (void)data; }
static void nothing_back(CUstream stream, CUresult status, void *data) { (void)stream, (void)status, (void)data; }

CASE(capture, of_the_stream) {
    open_card();
    FORBIDDEN("query", cuStreamQuery, s);
    FORBIDDEN("synchronize", cuStreamSynchronize, s);
    FORBIDDEN("callback", cuStreamAddCallback, s, nothing_back, NULL, 0);
    FORBIDDEN("host_function", cuLaunchHostFunc, s, nothing, NULL);
    FORBIDDEN("begin_again", cuStreamBeginCapture_v2, s, CAPTURE_GLOBAL);
    FORBIDDEN("destroy", cuStreamDestroy_v2, new_stream(0));
}

CASE(capture, of_the_context) {
    CUdeviceptr address;
    void *memory;
    size_t left, total;
    open_card();
    FORBIDDEN("synchronize", cuCtxSynchronize);
    FORBIDDEN("alloc", cuMemAlloc_v2, &address, 4096);
    FORBIDDEN("host_alloc", cuMemHostAlloc, &memory, 4096, 0);
    FORBIDDEN("info", cuMemGetInfo_v2, &left, &total);
    FORBIDDEN("free_stream_query", cuStreamQuery, other);
    FORBIDDEN("free_stream_synchronize", cuStreamSynchronize, other);
    FORBIDDEN("event_outside", cuEventQuery, before);
    const CUdeviceptr mine = allocated(4096), yours = allocated(4096);
    FORBIDDEN("copy", cuMemcpyDtoD_v2, mine, yours, 64);
    FORBIDDEN("free", cuMemFree_v2, mine);
}

CASE(capture, legacy_stream) {
    CUstreamCaptureStatus status;
    open_card();
    begin(CAPTURE_GLOBAL);
    tell_cuda("launch", spin(NULL, 0));
    tell_status("launch");
    end();
    FORBIDDEN("synchronize", cuStreamSynchronize, NULL);
    FORBIDDEN("query", cuStreamQuery, NULL);
    FORBIDDEN("is_capturing", cuStreamIsCapturing, NULL, &status);
    FORBIDDEN("capture_of_it", cuStreamBeginCapture_v2, NULL, CAPTURE_GLOBAL);
    FORBIDDEN("record", cuEventRecord, before, NULL);
}

CASE(capture, events) {
    float ms;
    open_card();
    FORBIDDEN("query_inside", cuEventQuery, inside);
    FORBIDDEN("synchronize_inside", cuEventSynchronize, inside);
    FORBIDDEN("elapsed_inside", cuEventElapsedTime, &ms, before, inside);
    FORBIDDEN("wait_for_outside", cuStreamWaitEvent, s, before, 0);
}

CASE(capture, ends) {
    CUgraph graph = (CUgraph)7;
    open_card();
    FORBIDDEN("of_a_free_stream", cuStreamEndCapture, other, &graph);
    FORBIDDEN("no_mode", cuStreamBeginCapture_v2, new_stream(0), (CUstreamCaptureMode)3);
    begin(CAPTURE_GLOBAL);
    CU(cuStreamQuery, s);
    tell_cuda("launch_when_invalid", spin(s, 0));
    graph = (CUgraph)7;
    TELL("when_invalid", cuStreamEndCapture, s, &graph);
    tell_yes("when_invalid_graph_is_null", !graph);
    tell_cuda("launch_afterwards", spin(s, 0));
    NEED(cuStreamSynchronize, s);
}

CASE(capture, unjoined) {
    CUgraph graph = (CUgraph)7, none;
    open_card();
    begin(CAPTURE_GLOBAL);
    NEED(cuStreamWaitEvent, other, inside, 0);
    need("cuLaunchKernel", spin(other, 0));
    TELL("end_in_the_joined_stream", cuStreamEndCapture, other, &none);
    TELL("end", cuStreamEndCapture, s, &graph);
    tell_yes("graph_is_null", !graph);
}

CASE(capture, merge) {
    open_card();
    begin(CAPTURE_GLOBAL);
    const CUstream second = new_stream(CU_STREAM_NON_BLOCKING);
    capture(second, CAPTURE_GLOBAL);
    TELL("wait_for_the_others", cuStreamWaitEvent, second, inside, 0);
    tell_status("wait_for_the_others");
}

/* ---- threads and modes ------------------------------------------------------------------------------------------- */

static CUresult answer;

static void end_it(void *unused) {
    CUgraph graph;
    (void)unused;
    answer = CU(cuStreamEndCapture, s, &graph);
}

CASE(capture, ended_by_another_thread) {
    static const char *const facts[] = {"global", "thread_local", "relaxed"};
    open_card();
    for (CUstreamCaptureMode mode = CAPTURE_GLOBAL; mode <= CAPTURE_RELAXED; mode++) {
        begin(mode);
        in_thread(end_it, NULL);
        tell_cuda(facts[mode], answer);
        end();
    }
}

static void allocate_as(void *mode) {
    CUdeviceptr address;
    NEED(cuThreadExchangeStreamCaptureMode, mode);
    answer = CU(cuMemAlloc_v2, &address, 4096);
}

/* `theirs` is the mode of the capture, `mine` that of the thread that allocates. */
CASE(capture, who_may_allocate) {
    static const char *const names[] = {"global", "thread_local", "relaxed"};
    char fact[96];
    open_card();
    for (int theirs = 0; theirs <= 2; theirs++) {
        for (int mine = 0; mine <= 2; mine++) {
            CUstreamCaptureMode mode = (CUstreamCaptureMode)mine;
            begin((CUstreamCaptureMode)theirs);
            in_thread(allocate_as, &mode);
            snprintf(fact, sizeof fact, "%s_thread_beside_%s", names[mine], names[theirs]);
            tell_cuda(fact, answer);
            end();
        }
    }
}
