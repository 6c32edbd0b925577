/* The pieces of cards' memory that there are, and which process holds which how often. */
#pragma once

#include "../common/protocol.h"

#include <sys/queue.h>

struct node;
struct process;

/* What one process has of one piece. */
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
    u64 away; /* of it, what is on the host: managed memory, or all as its process was taken from its cards */
    u64 used; /* when it was last, by the count of uses; managed memory */
    u32 card, kind;
    u32 generation; /* how often this entry has been in use: ids do not come again */
    u32 next_free;
    struct process *owner; /* who took it and is charged for it; NULL once that process let go of it */
    u32 owner_pid;
    bool shared;
    int kept; /* a descriptor that is handed to those who open it, or -1 */
    struct sim_token token;
};

struct piece_table {
    struct piece *piece;
    u32 room, begun; /* entries there are, and those that were ever in use */
    u32 free;        /* the first free entry + 1; 0: none */
    u32 in_use, kept;
    u64 uses; /* of managed memory, so far */
};

struct opened {
    u64 id, bytes;
    u32 card, owner_pid;
    int kept; /* still the piece's */
};

/* All of them: SIM_UNKNOWN for a piece that the process does not hold, and then nothing changed. */
enum sim_result piece_take(struct node *node, struct process *process, u32 card, u32 kind, u64 bytes, u64 *id);
enum sim_result piece_hold(struct node *node, struct process *process, u64 id);
enum sim_result piece_give(struct node *node, struct process *process, u64 id);

/* Always the same token for a piece. `*fd` is kept if it is the first, and -1 then. */
enum sim_result piece_share(struct node *node, struct process *process, u64 id, int *fd, struct sim_token *token);
enum sim_result piece_open(struct node *node, struct process *process, const struct sim_token *token,
                           struct opened *opened);

/* Whether the process holds this piece, and it is a context: these come and go with SIM_ATTACH and SIM_DETACH only. */
bool piece_is_context(const struct node *node, u64 id);

/* Whether all that the process holds could leave its cards: it is its own alone, and nothing of it is managed. */
bool pieces_can_go(const struct node *node, const struct process *process);
u64 pieces_bytes(const struct node *node, const struct process *process);
/* What it holds is on no card from now on. */
void pieces_go(struct node *node, struct process *process);
bool pieces_can_come(struct node *node, const struct process *process);
void pieces_come(struct node *node, struct process *process);

/* The process lets go of all that it holds. */
void pieces_forget(struct node *node, struct process *process);
