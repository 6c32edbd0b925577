/* Order between streams, by events' times on the card; and streams as objects. */
#include "conformance.h"

#include <string.h>

enum { KERNEL_MS = 100 };
enum { BLOCKING = 0, BESIDE = CU_STREAM_NON_BLOCKING };

static CUresult spin_per_thread(u64 ms) {
    u64 ns = ms * 1000000;
    void *parameters[] = {&ns};
    return CU(cuLaunchKernel_ptsz, spinning(), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
}

/* NULL in the per-thread form of a function. */
#define THREADS_OWN ((CUstream) - 1)

static CUevent kernel_in(CUstream stream) {
    const CUevent end = new_event(0);
    if (stream == THREADS_OWN) {
        need("cuLaunchKernel_ptsz", spin_per_thread(KERNEL_MS));
        NEED(cuEventRecord_ptsz, end, NULL);
    } else {
        need("cuLaunchKernel", spin(stream, KERNEL_MS));
        NEED(cuEventRecord, end, stream);
    }
    return end;
}

/* The order of two kernels of the same length, launched one right after the other. */
static void tell_order(const char *fact, CUstream first, CUstream second) {
    float ms = 0;
    spinning();
    NEED(cuCtxSynchronize);
    const CUevent one = kernel_in(first), two = kernel_in(second);
    NEED(cuCtxSynchronize);
    NEED(cuEventElapsedTime, &ms, one, two);
    tell(fact, ms > KERNEL_MS * 0.75 ? "one after the other" : "together");
}

CASE(streams, order) {
    open_card();
    const CUstream blocking = new_stream(BLOCKING), beside = new_stream(BESIDE);
    tell_order("same", blocking, blocking);
    tell_order("two_blocking", blocking, new_stream(BLOCKING));
    tell_order("two_beside", beside, new_stream(BESIDE));
    tell_order("blocking_then_beside", blocking, beside);
    tell_order("legacy_then_blocking", NULL, blocking);
    tell_order("blocking_then_legacy", blocking, NULL);
    tell_order("legacy_by_name_then_blocking", CU_STREAM_LEGACY, blocking);
    tell_order("legacy_then_legacy_by_name", NULL, CU_STREAM_LEGACY);
    tell_order("legacy_then_beside", NULL, beside);
    tell_order("beside_then_legacy", beside, NULL);
}

CASE(streams, per_thread) {
    open_card();
    tell_order("own_then_own", THREADS_OWN, THREADS_OWN);
    tell_order("own_then_own_by_name", THREADS_OWN, CU_STREAM_PER_THREAD);
    tell_order("own_then_legacy", THREADS_OWN, NULL);
    tell_order("legacy_then_own", NULL, THREADS_OWN);
    tell_order("own_then_blocking", THREADS_OWN, new_stream(BLOCKING));
    tell_order("own_then_beside", THREADS_OWN, new_stream(BESIDE));
}

static CUevent end_of_other;
static void launch_own(void *unused) {
    (void)unused;
    end_of_other = kernel_in(THREADS_OWN);
}

CASE(streams, of_two_threads) {
    float ms = 0;
    open_card();
    spinning();
    const CUevent mine = kernel_in(THREADS_OWN);
    in_thread(launch_own, NULL);
    NEED(cuCtxSynchronize);
    NEED(cuEventElapsedTime, &ms, mine, end_of_other);
    tell("default_streams", ms > KERNEL_MS * 0.75 ? "one after the other" : "together");
}

CASE(streams, wait_for_event) {
    open_card();
    const CUstream one = new_stream(BESIDE), two = new_stream(BESIDE);
    const CUevent end = long_kernel(one);
    TELL("wait", cuStreamWaitEvent, two, end, 0);
    TELL("waiting_stream", cuStreamQuery, two);
    TELL("another_stream", cuStreamQuery, new_stream(BESIDE));
    NEED(cuEventSynchronize, end);
    NEED(cuStreamSynchronize, two);
    TELL("wait_for_never_recorded", cuStreamWaitEvent, two, new_event(0), 0);
    TELL("query_after_that", cuStreamQuery, two);
    TELL("with_flags", cuStreamWaitEvent, two, end, 8);
    TELL("for_null", cuStreamWaitEvent, two, NULL, 0);
}

CASE(streams, queries) {
    open_card();
    const CUstream stream = new_stream(BESIDE);
    spinning();
    TELL("idle", cuStreamQuery, stream);
    TELL("legacy_idle", cuStreamQuery, NULL);
    long_kernel(stream);
    TELL("busy", cuStreamQuery, stream);
    TELL("legacy_beside_busy", cuStreamQuery, NULL);
    TELL("synchronize", cuStreamSynchronize, stream);
    TELL("over", cuStreamQuery, stream);
}

CASE(streams, create) {
    CUstream stream;
    int least, greatest, priority = 99;
    unsigned flags = 99;
    open_card();
    TELL("unknown_flag", cuStreamCreate, &stream, 2);
    TELL("no_room", cuStreamCreate, NULL, 0);
    NEED(cuStreamGetFlags, new_stream(BESIDE), &flags);
    tell_number("flags_of_non_blocking", flags);
    NEED(cuStreamGetFlags, NULL, &flags);
    tell_number("flags_of_legacy", flags);
    NEED(cuCtxGetStreamPriorityRange, &least, &greatest);
    tell("priorities", "%d to %d", least, greatest);
    NEED(cuStreamCreateWithPriority, &stream, BESIDE, greatest - 5);
    NEED(cuStreamGetPriority, stream, &priority);
    tell_yes("too_high_is_the_highest", priority == greatest);
    NEED(cuStreamCreateWithPriority, &stream, BESIDE, least + 5);
    NEED(cuStreamGetPriority, stream, &priority);
    tell_yes("too_low_is_the_lowest", priority == least);
    TELL("destroy_null", cuStreamDestroy_v2, NULL);
    TELL("destroy_legacy", cuStreamDestroy_v2, CU_STREAM_LEGACY);
}

/* A real driver may crash here. */
CASE(streams, void_handle) {
    open_card();
    const CUstream stream = new_stream(BESIDE);
    NEED(cuStreamDestroy_v2, stream);
    TELL("query", cuStreamQuery, stream);
}
