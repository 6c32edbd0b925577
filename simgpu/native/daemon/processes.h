/* The processes that speak with us: who they are by what the kernel says, and when they end. */
#pragma once

#include "loop.h"
#include "pieces.h"

#include "../common/node_file.h"

/* What a process has of one card. */
struct account {
    u32 contexts;
    int row; /* -1 without a context */
    u64 context; /* the piece that its contexts are */
    u64 bytes;   /* of the pieces that it took and still holds */
    u64 managed; /* of them, what NVML counts to no process */
    u64 received_before; /* of the row's time, by earlier processes */
};

struct process {
    struct watch watch; /* its pidfd: readable when the process has ended */
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
    bool greeted; /* it said SIM_HELLO */
};

LIST_HEAD(process_list, process);

/* The process at the other end of a new connection, known before or not. NULL: it has ended, is not to be seen from
 * here, or there are too many. */
struct process *process_of_peer(struct node *node, int socket);

/* Forgets a process that has nothing and no connection. */
void process_leave(struct node *node, struct process *process);

/* Everything that it had returns, its clients are hung up on, and it is forgotten. */
void process_end(struct node *node, struct process *process);

/* Exec ends contexts and leaves the process. What is then gone are its connections, and our memory file from its
 * memory: if so, everything returns. To be called when a client of it went, or a new one came. */
void process_check_exec(struct node *node, struct process *process);

struct process *process_with(const struct node *node, u32 pid);

void client_close(struct node *node, struct client *client);
