/* Events: their state before, while and after they are reached. */
#include "conformance.h"

CASE(events, create) {
    CUevent event;
    open_card();
    TELL("unknown_flag", cuEventCreate, &event, 64);
    TELL("between_processes_with_times", cuEventCreate, &event, CU_EVENT_INTERPROCESS);
    TELL("blocking", cuEventCreate, &event, CU_EVENT_BLOCKING_SYNC);
    TELL("no_room", cuEventCreate, NULL, 0);
}

CASE(events, never_recorded) {
    float ms;
    open_card();
    const CUevent never = new_event(0), done = recorded(NULL);
    NEED(cuCtxSynchronize);
    TELL("query", cuEventQuery, never);
    TELL("synchronize", cuEventSynchronize, never);
    TELL("elapsed_from", cuEventElapsedTime, &ms, never, done);
    TELL("elapsed_to", cuEventElapsedTime, &ms, done, never);
}

CASE(events, pending) {
    float ms;
    open_card();
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    const CUevent begin = recorded(stream), end = long_kernel(stream);
    TELL("query", cuEventQuery, end);
    TELL("elapsed", cuEventElapsedTime, &ms, begin, end);
    TELL("synchronize", cuEventSynchronize, end);
    TELL("query_then", cuEventQuery, end);
}

CASE(events, elapsed) {
    float ms = -1;
    open_card();
    spinning();
    const CUevent begin = recorded(NULL);
    need("cuLaunchKernel", spin(NULL, 20));
    const CUevent end = recorded(NULL);
    NEED(cuEventSynchronize, end);
    NEED(cuEventElapsedTime, &ms, begin, end);
    tell_yes("of_20_ms_is_20_to_21", ms >= 19.99 && ms < 21);
    NEED(cuEventElapsedTime, &ms, end, begin);
    tell_yes("backwards_is_negative", ms < 0);
    NEED(cuEventElapsedTime, &ms, begin, begin);
    tell_yes("of_one_event_is_0", !(ms < 0) && !(ms > 0));
    TELL("no_room", cuEventElapsedTime, NULL, begin, end);
    const CUevent timeless = new_event(CU_EVENT_DISABLE_TIMING);
    NEED(cuEventRecord, timeless, NULL);
    NEED(cuCtxSynchronize);
    TELL("to_one_without_times", cuEventElapsedTime, &ms, begin, timeless);
    TELL("query_of_one_without_times", cuEventQuery, timeless);
}

CASE(events, recorded_again) {
    open_card();
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    const CUevent event = recorded(stream);
    NEED(cuEventSynchronize, event);
    long_kernel(stream);
    NEED(cuEventRecord, event, stream);
    TELL("query", cuEventQuery, event);
    TELL("destroy_while_pending", cuEventDestroy_v2, event);
    TELL("destroy_null", cuEventDestroy_v2, NULL);
    TELL("record_null", cuEventRecord, NULL, stream);
}

/* A real driver may crash here. */
CASE(events, void_handle) {
    open_card();
    const CUevent event = new_event(0);
    NEED(cuEventDestroy_v2, event);
    TELL("query", cuEventQuery, event);
}

CASE(events, of_two_contexts) {
    CUcontext other;
    float ms;
    const CUdevice device = open_card();
    const CUstream stream = new_stream(0);
    const CUevent mine = recorded(stream);
    NEED(cuCtxSynchronize);
    NEED(cuCtxCreate_v2, &other, 0, device);
    const CUevent theirs = new_event(0);
    TELL("record_in_the_others_stream", cuEventRecord, theirs, stream);
    TELL("wait_for_the_others", cuStreamWaitEvent, new_stream(0), mine, 0);
    TELL("query_the_others", cuEventQuery, mine);
    NEED(cuEventRecord, theirs, NULL);
    NEED(cuCtxSynchronize);
    TELL("elapsed_between", cuEventElapsedTime, &ms, mine, theirs);
}
