/* Checkpoint and restore of other processes, by pid. simgpud keeps the state of each; the time that it takes is spent
 * here, in the calling process. A locked process waits in its next call; see device_fault. */
#include "streams.h"

#include <stdlib.h>
#include <time.h>

enum { FIRST_DRIVER = 570, LOOK_NS = 1000000, MS = 1000000 };

/* Measured on an H200 with driver 580: a constant for any process, and a rate in bytes a second for what it holds of
 * the card. */
static const struct pace {
    u64 least_ns, rate;
    enum sim_way way;
} OUT = {59 * MS, 2476000000, SIM_TO_HOST}, BACK = {102 * MS, 7837000000, SIM_TO_CARD};

static CUresult ask(enum sim_step step, int pid, struct sim_reply *reply) {
    TRY(driver_ready());
    if (atoi(driver_node()->file->driver) < FIRST_DRIVER) return CUDA_ERROR_NOT_SUPPORTED;
    const struct sim_request request = {.ask = SIM_CHECKPOINT, .kind = step, .id = pid > 0 ? (u64)pid : 0};
    const int result = sim_call(driver_node(), &request, reply, NULL);
    switch (result) {
    case SIM_UNKNOWN: return CUDA_ERROR_NOT_INITIALIZED; /* the process does not use the driver */
    case SIM_MISUSED: return CUDA_ERROR_ILLEGAL_STATE;
    case SIM_REFUSED: return CUDA_ERROR_NOT_SUPPORTED;
    default: return driver_result(result);
    }
}

static void sleep_until(u64 then) {
    const struct timespec at = {(time_t)(then / SIM_NS_PER_S), (long)(then % SIM_NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL)) {
    }
}

static CUresult move(int pid, enum sim_step may, enum sim_step does, const struct pace *pace) {
    struct sim_reply reply;
    TRY(ask(may, pid, &reply));
    const struct sim_node *node = driver_node();
    const u64 now = sim_now(), bus = node->file->card[reply.row].model.bus_rate;
    const u64 own = pace->least_ns + (u64)((unsigned __int128)reply.bytes * SIM_NS_PER_S / pace->rate);
    const u64 link_ns = bus ? (u64)((unsigned __int128)reply.bytes * SIM_NS_PER_S / bus) : 0;
    const u64 link = sim_link_take(&node->timelines[reply.row], pace->way, now, link_ns);
    sleep_until(link > now + own ? link : now + own);
    return ask(does, pid, &reply);
}

CALL(cuCheckpointProcessGetState, int pid, int *state) {
    struct sim_reply reply;
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    TRY(ask(SIM_LOOK, pid, &reply));
    *state = (int)reply.count;
    return CUDA_SUCCESS;
}

/* 0 ms: no timeout. */
CALL(cuCheckpointProcessLock, int pid, const unsigned *timeout_ms) {
    const u64 patience_ns = timeout_ms && *timeout_ms ? *timeout_ms * (u64)MS : UINT64_MAX / 2, begun = sim_now();
    struct sim_reply reply;
    TRY(ask(SIM_LOOK, pid, &reply));
    if (reply.count != SIM_IS_RUNNING) return CUDA_ERROR_ILLEGAL_STATE;
    for (;;) {
        TRY(ask(SIM_LOCK, pid, &reply));
        if (reply.count == SIM_IS_LOCKED) return CUDA_SUCCESS;
        if (sim_now() - begun >= patience_ns) break;
        sleep_until(sim_now() + LOOK_NS);
    }
    TRY(ask(SIM_UNLOCK, pid, &reply));
    return CUDA_ERROR_NOT_READY;
}

CALL(cuCheckpointProcessCheckpoint, int pid, const void *wishes) {
    (void)wishes;
    return move(pid, SIM_MAY_GO, SIM_GO, &OUT);
}

CALL(cuCheckpointProcessRestore, int pid, const void *wishes) {
    (void)wishes;
    return move(pid, SIM_MAY_COME, SIM_COME, &BACK);
}

CALL(cuCheckpointProcessUnlock, int pid, const void *wishes) {
    (void)wishes;
    struct sim_reply reply;
    return ask(SIM_UNLOCK, pid, &reply);
}
