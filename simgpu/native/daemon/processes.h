/* The processes that connect: their identity as given by the kernel, and the detection of their end. */
#pragma once

#include "loop.h"
#include "pieces.h"

#include "../common/node_file.h"

/* A process's use of one card. */
struct account {
    u32 contexts;
    int row; /* -1 without a context */
    u64 context; /* the piece of its contexts */
    u64 bytes;   /* of the pieces that it took and still holds */
    u64 managed; /* part of them that NVML attributes to no process */
    u64 received_before; /* of the row's time, by earlier processes */
};

struct process {
    struct watch watch; /* its pidfd: readable once the process has ended */
    LIST_ENTRY(process) next;
    u32 pid, client_count, hold_count;
    enum sim_state state;
    LIST_HEAD(, client) clients;
    struct hold_list holds;
    struct account account[SIM_CARDS];
};

/* A connection of a process. */
struct client {
    struct watch watch;
    LIST_ENTRY(client) of_process;
    struct process *process;
    bool greeted; /* it has sent SIM_HELLO */
};

LIST_HEAD(process_list, process);

/* The process at the other end of a new connection, registered if new. NULL: it has ended, is not visible from here, or
 * there are too many. */
struct process *process_of_peer(struct node *node, int socket);

/* Removes a process that has no resources and no connection. */
void process_leave(struct node *node, struct process *process);

/* Releases everything that it had, closes its connections, and removes it. */
void process_end(struct node *node, struct process *process);

/* Detects exec, which ends contexts but not the process: its connections are then gone, and our memory file is no
 * longer mapped; if so, everything is released. Call it when one of its clients disconnected, or a new one
 * connected. */
void process_check_exec(struct node *node, struct process *process);

struct process *process_with(const struct node *node, u32 pid);

void client_close(struct node *node, struct client *client);
