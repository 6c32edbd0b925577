/* Pieces of the cards' memory, and how often each process holds each one. */
#pragma once

#include "../common/protocol.h"

#include <sys/queue.h>

struct node;
struct process;

/* One process's holds on one piece. */
struct hold {
    LIST_ENTRY(hold) in_piece, in_process;
    struct process *process;
    u32 piece; /* index */
    u32 count;
};

LIST_HEAD(hold_list, hold);

struct piece {
    struct hold_list holds; /* empty: the piece is free */
    u64 bytes;
    u64 away; /* bytes of it on the host: managed memory, or all while its process is checkpointed */
    u64 used; /* time of last use, by the count of uses; managed memory */
    u32 card, kind;
    u32 generation; /* how often this entry was reused, so that ids never repeat */
    u32 next_free;
    struct process *owner; /* the process that took it and is charged for it; NULL once that has released it */
    u32 owner_pid;
    bool shared;
    int kept; /* a descriptor handed to processes that open it, or -1 */
    struct sim_token token;
};

struct piece_table {
    struct piece *piece;
    u32 room, begun; /* allocated entries, and those that were ever used */
    u32 free;        /* the first free entry + 1; 0: none */
    u32 in_use, kept;
    u64 uses; /* of managed memory in total */
};

struct opened {
    u64 id, bytes;
    u32 card, owner_pid;
    int kept; /* owned by the piece */
};

/* All of these return SIM_UNKNOWN, without effect, for a piece that the process does not hold. */
enum sim_result piece_take(struct node *node, struct process *process, u32 card, u32 kind, u64 bytes, u64 *id);
enum sim_result piece_hold(struct node *node, struct process *process, u64 id);
enum sim_result piece_give(struct node *node, struct process *process, u64 id);

/* A piece always has the same token. `*fd` is kept and set to -1 if it is the first. */
enum sim_result piece_share(struct node *node, struct process *process, u64 id, int *fd, struct sim_token *token);
enum sim_result piece_open(struct node *node, struct process *process, const struct sim_token *token,
                           struct opened *opened);

/* Whether the process holds this piece and it is a context's: those are managed only by SIM_ATTACH and SIM_DETACH. */
bool piece_is_context(const struct node *node, u64 id);

/* Whether everything that the process holds can leave its cards: nothing is shared, and nothing is managed memory. */
bool pieces_can_go(const struct node *node, const struct process *process);
u64 pieces_bytes(const struct node *node, const struct process *process);
/* Moves everything that it holds off its cards. */
void pieces_go(struct node *node, struct process *process);
bool pieces_can_come(struct node *node, const struct process *process);
void pieces_come(struct node *node, struct process *process);

/* Releases all holds of the process. */
void pieces_forget(struct node *node, struct process *process);
