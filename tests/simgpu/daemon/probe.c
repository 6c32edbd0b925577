/* The part of libcuda and libnvidia-ml that connects to the node: a library with connection.c. */
#include "connection.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

int probe_connect(void);
int probe_take(u64 bytes);
int probe_in_child(void);
int probe_alive(void);
int probe_visible(void);
int probe_open_files(int fd, u64 *id);
int probe_processes(void);
const char *probe_root(void);
void probe_disconnect(void);

static struct sim_node *node;

SHOWN int probe_connect(void) { return sim_connect(&node); }

SHOWN int probe_take(u64 bytes) {
    struct sim_request request = {.ask = SIM_TAKE, .kind = SIM_BLOCK, .bytes = bytes};
    struct sim_reply reply;
    return sim_call(node, &request, &reply, NULL);
}

/* A forked child's results of the two calls above, as tens and ones. */
SHOWN int probe_in_child(void) {
    int status;
    pid_t child = fork();
    if (child == 0) _exit(10 * probe_connect() + probe_take(1));
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

SHOWN int probe_alive(void) { return sim_alive(node); }

SHOWN int probe_visible(void) {
    u32 cards[SIM_CARDS], count = sim_visible(node, cards);
    int seen = 0;
    for (u32 n = 0; n < count; n++) seen |= 1 << cards[n];
    return seen;
}

/* Shares a new piece with `fd` and opens it again: returns the descriptor received. */
SHOWN int probe_open_files(int fd, u64 *id) {
    struct sim_request take = {.ask = SIM_TAKE, .kind = SIM_BLOCK, .bytes = 1}, share = {.ask = SIM_SHARE};
    struct sim_reply reply;
    if (sim_call(node, &take, &reply, NULL)) return -1;
    *id = share.id = reply.id;
    int send = fd;
    if (sim_call(node, &share, &reply, &send)) return -2;
    struct sim_request open = {.ask = SIM_OPEN, .token = reply.token};
    int got = -1;
    return sim_call(node, &open, &reply, &got) ? -3 : got;
}

SHOWN int probe_processes(void) {
    struct sim_process found[1];
    struct sim_request attach = {.ask = SIM_ATTACH};
    struct sim_reply reply;
    if (sim_call(node, &attach, &reply, NULL)) return -100;
    int count = sim_processes_of(node, 0, found, 1);
    return count == 1 && found[0].pid == (u32)getpid() ? count : -200 - count;
}

SHOWN const char *probe_root(void) { return node->root; }

SHOWN void probe_disconnect(void) { sim_disconnect(); }
