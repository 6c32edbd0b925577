#define _GNU_SOURCE
#include "node.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A mapped file of `bytes`, or NULL and errno. Sealed against resizing: truncation would kill the processes that map
 * it. */
static void *sealed_file(const char *name, size_t bytes, int more_seals, int *fd) {
    void *at = MAP_FAILED;
    if ((*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)) < 0) return NULL;
    if (!ftruncate(*fd, (off_t)bytes)) at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (at != MAP_FAILED && !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | more_seals)) return at;
    if (at != MAP_FAILED) munmap(at, bytes);
    close(*fd);
    return NULL;
}

static size_t bytes_of_lines(u32 cards) { return (cards ? cards : 1) * sizeof(struct sim_timeline); }

static void fill_in(struct sim_node_file *file, const struct config *config) {
    file->magic = SIM_NODE_MAGIC;
    file->version = SIM_NODE_VERSION;
    memcpy(file->driver, config->driver, sizeof file->driver);
    file->cuda = config->cuda;
    file->cards = config->cards;
    while (getrandom(&file->boot, sizeof file->boot, 0) != sizeof file->boot) {
    }
    for (u32 card = 0; card < config->cards; card++) file->card[card].model = config->card[card];
}

int node_open(struct node *node, const struct config *config) {
    int file_fd, lines_fd;
    struct sim_node_file *file = sealed_file(NODE_FILE_NAME, sizeof *file, F_SEAL_FUTURE_WRITE, &file_fd);
    if (!file) return -1;
    struct sim_timeline *lines = sealed_file(LINES_FILE_NAME, bytes_of_lines(config->cards), 0, &lines_fd);
    if (!lines) {
        munmap(file, sizeof *file);
        close(file_fd);
        return -1;
    }
    fill_in(file, config);
    for (u32 card = 0; card < config->cards; card++) sim_timeline_begin(&lines[card], sim_now());
    node->file = file;
    node->file_fd = file_fd;
    node->lines = lines;
    node->lines_fd = lines_fd;
    memset(node->to_fail, 0, sizeof node->to_fail);
    return 0;
}

void node_close(struct node *node) {
    node_state(node, SIM_GONE);
    set_and_wake(&node->file->trouble.nvml_hang, 0);
    munmap(node->lines, bytes_of_lines(node->file->cards));
    munmap(node->file, sizeof *node->file);
    close(node->lines_fd);
    close(node->file_fd);
}

void set_and_wake(_Atomic u32 *word, u32 value) {
    atomic_store_explicit(word, value, memory_order_release);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void node_state(struct node *node, enum sim_node_state state) { set_and_wake(&node->file->state, state); }

void node_tell(struct node *node, u32 card, u64 type, u64 data) {
    struct sim_node_file *file = node->file;
    u32 events = atomic_load_explicit(&file->events, memory_order_relaxed);
    atomic_fetch_add_explicit(&file->sequence, 1, memory_order_acq_rel);
    file->event[events % SIM_EVENTS] = (struct sim_event){.type = type, .data = data, .card = card};
    atomic_fetch_add_explicit(&file->sequence, 1, memory_order_release);
    set_and_wake(&file->events, events + 1);
}

void node_advance(struct node *node, u32 card) { sim_advance(&node->lines[card], SIM_WRITER_DAEMON, sim_now()); }
