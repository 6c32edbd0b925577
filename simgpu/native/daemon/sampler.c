#include "sampler.h"

#include "accounts.h"

#include <sys/timerfd.h>
#include <unistd.h>

enum { PERIOD_MS = 100 };

/* State of each card at the last sample. */
struct moment {
    u64 wall;
    u64 received[SIM_ROWS];
};

static struct sampler {
    struct watch timer;
    struct moment last[SIM_CARDS];
} sampler;

/* A failed process has no work; anything that it still publishes is dropped. */
static void drop_failed_work(struct node *node, u32 card) {
    for (u32 row = 0; row < SIM_ROWS; row++) {
        u32 fault = atomic_load(&node->file->card[card].live.fault[row]);
        u64 received = sim_share_of(&node->lines[card], row, NULL).received;
        if (fault && atomic_load(&node->lines[card].row[row].published) > received)
            sim_row_reset(&node->lines[card], row);
    }
}

static struct moment look(struct node *node, u32 card) {
    struct moment now;
    node_advance(node, card);
    for (u32 row = 0; row < SIM_ROWS; row++)
        now.received[row] = sim_share_of(&node->lines[card], row, &now.wall).received;
    return now;
}

/* At most 1000: a process may write anything into a timeline. */
static u32 milli(u64 part, u64 whole) { return whole && part < whole ? (u32)(part * 1000 / whole) : part ? 1000 : 0; }

static void take_sample(struct node *node, u32 card) {
    struct sim_card *about = &node->file->card[card];
    const struct moment now = look(node, card), *last = &sampler.last[card];
    u64 number = atomic_load(&about->samples), time = now.wall - last->wall, busy = 0;
    struct sim_sample sample = {.wall = now.wall};
    for (u32 row = 0; row < SIM_ROWS; row++) {
        u64 received = now.received[row] - last->received[row];
        sample.row_busy_milli[row] = milli(received, time);
        busy += received;
    }
    sample.busy_milli = milli(busy, time);
    sample.memory_milli = sample.busy_milli; /* kernels are assumed to access memory all the time */
    about->sample[number % SIM_SAMPLES] = sample;
    atomic_store(&about->samples, number + 1);
    atomic_fetch_add(&about->live.busy_ns, busy < time ? busy : time);
    sampler.last[card] = now;
}

static void arm(bool on) {
    struct itimerspec timer = {0};
    if (on) timer.it_value.tv_nsec = timer.it_interval.tv_nsec = PERIOD_MS * 1000000L;
    timerfd_settime(sampler.timer.fd, 0, &timer, NULL);
}

static void tick(struct node *node, struct watch *watch, unsigned events) {
    u64 times;
    (void)events;
    if (read(watch->fd, &times, sizeof times) != sizeof times) return;
    for (u32 card = 0; card < node->file->cards; card++) {
        drop_failed_work(node, card);
        take_sample(node, card);
    }
    if (!node->client_count) arm(false);
}

void sampling_restart(struct node *node) {
    for (u32 card = 0; card < node->file->cards; card++) sampler.last[card] = look(node, card);
    arm(true);
}

int sampling_begin(struct node *node) {
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    sampler.timer = (struct watch){.fd = fd, .ready = tick};
    return fd < 0 ? -1 : loop_watch(node->loop, &sampler.timer);
}
