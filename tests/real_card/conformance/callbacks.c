/* The card's work on the host: its order, and the calls allowed there. */
#include "conformance.h"

#include <string.h>
#include <unistd.h>

static char order[32];
static void note(void *letter) { strncat(order, letter, sizeof order - strlen(order) - 1); }
static void note_callback(CUstream stream, CUresult status, void *letter) {
    (void)stream;
    note(status ? "!" : letter);
}

CASE(callbacks, order) {
    open_card();
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    NEED(cuLaunchHostFunc, stream, note, "a");
    NEED(cuStreamAddCallback, stream, note_callback, "b", 0);
    NEED(cuLaunchHostFunc, stream, note, "c");
    NEED(cuStreamAddCallback, stream, note_callback, "d", 0);
    NEED(cuStreamSynchronize, stream);
    tell("of_one_stream", "%s", order);
    TELL("with_flags", cuStreamAddCallback, stream, note_callback, "x", 1);
    TELL("no_callback", cuStreamAddCallback, stream, NULL, NULL, 0);
    TELL("no_function", cuLaunchHostFunc, stream, NULL, NULL);
}

/* Written by a kernel behind the function, which cannot have run before that returned. */
static CUevent behind;
static void slow(void *unused) {
    (void)unused;
    usleep(200 * 1000);
    note("h");
}

CASE(callbacks, hold_their_stream) {
    open_card();
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    spinning();
    NEED(cuLaunchHostFunc, stream, slow, NULL);
    need("cuLaunchKernel", spin(stream, 0));
    behind = recorded(stream);
    TELL("kernel_behind", cuEventQuery, behind);
    need("cuLaunchKernel", spin(new_stream(CU_STREAM_NON_BLOCKING), 0));
    NEED(cuEventSynchronize, behind);
    tell_yes("function_is_over_first", !strcmp(order, "h"));
}

static CUresult query, alloc;
static CUstream asked;
static void ask_driver(void *unused) {
    CUdeviceptr address;
    (void)unused;
    alloc = CU(cuMemAlloc_v2, &address, 64);
    query = CU(cuStreamQuery, asked);
}
static void ask_driver_callback(CUstream stream, CUresult status, void *unused) {
    (void)stream, (void)status;
    ask_driver(unused);
}

CASE(callbacks, may_not_call_the_driver) {
    open_card();
    asked = new_stream(CU_STREAM_NON_BLOCKING);
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    NEED(cuLaunchHostFunc, stream, ask_driver, NULL);
    NEED(cuStreamSynchronize, stream);
    tell_cuda("alloc_in_function", alloc);
    tell_cuda("query_in_function", query);
    NEED(cuStreamAddCallback, stream, ask_driver_callback, NULL, 0);
    NEED(cuStreamSynchronize, stream);
    tell_cuda("alloc_in_callback", alloc);
    tell_cuda("query_in_callback", query);
}
