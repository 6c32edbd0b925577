/* simgpud's handling of requests. */
#pragma once

#include "node.h"

struct answer {
    union {
        struct sim_reply reply;
        struct sim_processes processes;
    };
    size_t bytes;
    int fds[2]; /* to send along; -1: none. Ownership is not transferred. */
};

/* Answers one request of a process. `*fd` came with it or is -1; it is set to -1 if it is kept. */
void call_answer(struct node *node, struct process *process, const struct sim_request *request, int *fd,
                 struct answer *answer);
