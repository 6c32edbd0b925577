/* The process's view of a device's time: its progress, and waiting for it. */
#include "streams.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum {
    SPIN_NS = 100000,            /* a sleep ends this early, as the kernel wakes threads late */
    YIELD_NS = 200000,           /* sleep while other processes have the card */
    NAP_NS = 20000000,           /* longest sleep: faults must be noticed */
    NAP_TIMING_NS = 8000000, /* longest sleep while events wait for their times, which are forgotten after SIM_RUNS
                              * runs */
    LOOK_NS = 100000000, /* interval of checks that simgpud is alive */
};

struct after {
    struct after *next;
    u64 end;
    void (*action)(void *argument);
    void *argument;
};

/* Removes due actions from the list; they run once no lock is held. */
static struct after *take_due(struct device *device, u64 received) {
    struct after *due = NULL, **last = &due;
    for (struct after **each = &device->after; *each;) {
        struct after *after = *each;
        if (after->end > received) {
            each = &after->next;
            continue;
        }
        *each = after->next;
        *last = after;
        last = &after->next;
    }
    *last = NULL;
    return due;
}

static void run_due(struct after *due) {
    while (due) {
        struct after *next = due->next;
        due->action(due->argument);
        free(due);
        due = next;
    }
}

void device_after(struct device *device, u64 end, void (*action)(void *argument), void *argument) {
    struct after *after = malloc(sizeof *after);
    if (!after) return action(argument);
    *after = (struct after){.end = end, .action = action, .argument = argument};
    HOLD(device->advancing);
    struct after **last = &device->after;
    while (*last) last = &(*last)->next;
    *last = after;
}

static void look_after_simgpud(struct device *device, u64 now) {
    if (now - device->looked_at < LOOK_NS) return;
    device->looked_at = now;
    if (!sim_alive(driver_node())) driver_lost();
}

void device_advance_to(struct device *device, u64 now) {
    if (device->row < 0) return;
    HOLD(device->advancing);
    sim_advance(device->line, (u32)device->row, now);
    u64 wall;
    struct sim_share share = sim_share_of(device->line, (u32)device->row, &wall);
    atomic_store_explicit(&device->received, share.received, memory_order_relaxed);
    atomic_store_explicit(&device->lag, wall - share.received, memory_order_release);
    if (device->timing) events_resolve(device, &share);
    look_after_simgpud(device, now);
}

void device_act(struct device *device) {
    if (!device->after) return;
    pthread_mutex_lock(&device->advancing);
    struct after *due = take_due(device, device->received);
    pthread_mutex_unlock(&device->advancing);
    run_due(due);
}

void device_advance(struct device *device) { device_advance_to(device, sim_now()); }

void device_publish(struct device *device, u64 end) {
    if (device->row >= 0) raise_to(&device->line->row[device->row].published, end);
}

static void nap(u64 until) {
    struct timespec then = {(time_t)(until / SIM_NS_PER_S), (long)(until % SIM_NS_PER_S)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL);
}

static void spin(u64 until) {
    while (sim_now() < until) {
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
}

static u64 least(u64 a, u64 b) { return a < b ? a : b; }

/* State of waiting for `end`. */
struct waiting {
    bool exactly;                /* wake at that very moment, by spinning; otherwise a little later */
    u64 looked, received;        /* at the last check */
};

static void pass(const struct device *device, struct waiting *waiting, u64 now, u64 received, u64 end) {
    u64 remaining = end - received, spare = waiting->exactly ? SPIN_NS : 0;
    bool others_had_it = waiting->looked && received - waiting->received < (now - waiting->looked) / 4;
    waiting->looked = now;
    waiting->received = received;
    if (remaining > spare)
        nap(now + least(remaining - spare, device->timing ? NAP_TIMING_NS : NAP_NS));
    else if (others_had_it)
        nap(now + YIELD_NS);
    else
        spin(now + remaining);
}

CUresult device_wait_how(struct device *device, u64 end, bool exactly) {
    int kept = errno;
    CUresult result;
    struct waiting waiting = {.exactly = exactly};
    while (!(result = device_fault(device))) {
        u64 now = sim_now();
        device_advance_to(device, now);
        u64 received = atomic_load_explicit(&device->received, memory_order_relaxed);
        if (received >= end) break;
        if (device->row < 0) {
            result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
            break;
        }
        pass(device, &waiting, now, received, end);
    }
    errno = kept;
    return result;
}

CUresult device_wait(struct device *device, u64 end) {
    CUresult result = device_wait_how(device, end, true);
    device_act(device);
    return result;
}
