/* A library's way to its node: where its driver root is, the two memory files, and calls to simgpud. */
#pragma once

#include "node_file.h"
#include "protocol.h"

struct sim_node {
    int socket;
    const struct sim_node_file *file;  /* NULL: not connected, or a forked child */
    struct sim_timeline *timelines;    /* [file->cards] */
    char root[512];                    /* of the driver: the folder that has dev, usr and run; "" for / */
};

/* Connects once for this process and library. 0, or a sim_result. Any thread. After a fork the child has no node: it
 * is told SIM_BROKEN for ever, as a child of a process that uses CUDA is. */
int sim_connect(struct sim_node **node);

/* Forgets the node, so that the next sim_connect finds the simgpud that then lives, in a forked child too. The files
 * are no longer mapped: no other call may be under way. Not for a library that computes; for it, simgpud's death is for
 * ever. */
void sim_disconnect(void);

/* One request, one reply. A descriptor to send is `*fd` >= 0 before, one received is `*fd` after, or -1; NULL where
 * none is expected. Any thread (calls are serialised); signals are retried, a dead simgpud is SIM_BROKEN. */
int sim_call(struct sim_node *node, const struct sim_request *request, struct sim_reply *reply, int *fd);

/* The processes of a card, as this process may see them. The number of them, or -sim_result. */
int sim_processes_of(struct sim_node *node, u32 card, struct sim_process *found, int most);

/* Whether simgpud still lives; asks the kernel, so not for hot paths. */
bool sim_alive(const struct sim_node *node);

/* Which cards this process may use: those whose device node exists in its driver root. Their indices in the node
 * file, in order; how many. MIG instances follow their parent's device node. */
u32 sim_visible(const struct sim_node *node, u32 cards[SIM_CARDS]);
