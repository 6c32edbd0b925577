/* A library's connection to its node: the location of its driver root, the two memory files, and calls to simgpud. */
#pragma once

#include "node_file.h"
#include "protocol.h"

struct sim_node {
    int socket;
    const struct sim_node_file *file;  /* NULL: not connected, or a forked child */
    struct sim_timeline *timelines;    /* [file->cards] */
    char root[512];                    /* the driver root, which contains dev, usr and run; "" for / */
};

/* Connects, once per process and library. Returns 0 or a sim_result. Thread-safe. After a fork the child has no node:
 * it gets SIM_BROKEN permanently, as the child of a process that uses CUDA fails. */
int sim_connect(struct sim_node **node);

/* Drops the node, so that the next sim_connect finds the then running simgpud, in a forked child too. Unmaps the files:
 * no other call may be in progress. Not for libcuda, for which simgpud's death is permanent. */
void sim_disconnect(void);

/* One request, one reply. `*fd` >= 0 is sent along; afterwards `*fd` is the received descriptor or -1; NULL if none is
 * expected. Thread-safe (calls are serialized); interrupted calls are retried, and a dead simgpud is SIM_BROKEN. */
int sim_call(struct sim_node *node, const struct sim_request *request, struct sim_reply *reply, int *fd);

/* Lists the processes of a card that are visible to this process. Returns their number, or -sim_result. */
int sim_processes_of(struct sim_node *node, u32 card, struct sim_process *found, int most);

/* Whether simgpud is alive; makes a system call, so not for hot paths. */
bool sim_alive(const struct sim_node *node);

/* The cards that this process may use: those whose device node exists in its driver root. Stores their indices in the
 * node file, in order, and returns how many. MIG instances follow their parent's device node. */
u32 sim_visible(const struct sim_node *node, u32 cards[SIM_CARDS]);
