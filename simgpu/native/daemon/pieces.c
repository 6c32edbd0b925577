#include "node.h"

#include "accounts.h"
#include "managed.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    MOST_PIECES = 1 << 18,
    MOST_HOLDS = 1 << 16, /* most pieces that one process may hold */
    MOST_TIMES = 1 << 30, /* most holds of one process on one piece */
};

/* ---- the table -------------------------------------------------------------------------------------------------- */

static u64 id_of(const struct piece_table *table, u32 index) {
    return (u64)table->piece[index].generation << 32 | index;
}

/* The index of a piece in use, or -1. */
static int64_t index_of(const struct piece_table *table, u64 id) {
    u32 index = (u32)id;
    bool there = index < table->begun && id == id_of(table, index) && !LIST_EMPTY(&table->piece[index].holds);
    return there ? (int64_t)index : -1;
}

static struct hold *hold_of(const struct piece_table *table, int64_t index, const struct process *process) {
    struct hold *hold = NULL;
    if (index < 0) return NULL;
    LIST_FOREACH(hold, &table->piece[index].holds, in_piece)
    if (hold->process == process) break;
    return hold;
}

static bool grow(struct piece_table *table) {
    u32 room = table->room ? 2 * table->room : 256;
    struct piece *more = room <= MOST_PIECES ? realloc(table->piece, room * sizeof *more) : NULL;
    if (!more) return false;
    /* The first hold of each list points back to its piece, which may have moved. */
    for (u32 n = 0; n < table->begun; n++)
        if (!LIST_EMPTY(&more[n].holds)) LIST_FIRST(&more[n].holds)->in_piece.le_prev = &LIST_FIRST(&more[n].holds);
    table->piece = more;
    table->room = room;
    return true;
}

/* The index of a free entry, or -1. */
static int64_t new_piece(struct piece_table *table) {
    if (table->free) {
        u32 index = table->free - 1;
        table->free = table->piece[index].next_free;
        return index;
    }
    if (table->begun == table->room && !grow(table)) return -1;
    table->piece[table->begun] = (struct piece){.kept = -1};
    return table->begun++;
}

static void free_piece(struct node *node, u32 index) {
    struct piece_table *table = &node->pieces;
    struct piece *piece = &table->piece[index];
    account_return(node, piece->card, piece->bytes - piece->away);
    if (piece->kept >= 0) {
        close(piece->kept);
        table->kept--;
    }
    u32 generation = piece->generation;
    *piece = (struct piece){.generation = generation, .next_free = table->free, .kept = -1};
    table->free = index + 1;
    table->in_use--;
}

/* ---- holds ------------------------------------------------------------------------------------------------------ */

static enum sim_result add_hold(struct node *node, struct process *process, u32 index) {
    struct hold *hold = hold_of(&node->pieces, index, process);
    if (hold) {
        if (hold->count == MOST_TIMES) return SIM_NO_ROOM;
        hold->count++;
        return SIM_OK;
    }
    if (process->hold_count == MOST_HOLDS || !(hold = malloc(sizeof *hold))) return SIM_NO_ROOM;
    *hold = (struct hold){.process = process, .piece = index, .count = 1};
    LIST_INSERT_HEAD(&node->pieces.piece[index].holds, hold, in_piece);
    LIST_INSERT_HEAD(&process->holds, hold, in_process);
    process->hold_count++;
    return SIM_OK;
}

static void drop_hold(struct node *node, struct hold *hold) {
    u32 index = hold->piece;
    struct piece *piece = &node->pieces.piece[index];
    if (piece->owner == hold->process) {
        account_discharge(node, piece->card, piece->owner, piece->kind, piece->bytes - piece->away);
        piece->owner = NULL;
    }
    hold->process->hold_count--;
    LIST_REMOVE(hold, in_piece);
    LIST_REMOVE(hold, in_process);
    free(hold);
    if (LIST_EMPTY(&piece->holds)) free_piece(node, index);
}

/* ---- operations of processes ------------------------------------------------------------------------------------ */

enum sim_result piece_take(struct node *node, struct process *process, u32 card, u32 kind, u64 bytes, u64 *id) {
    const u64 away = kind == SIM_MANAGED ? managed_on_host(node, card, bytes) : 0;
    managed_make_room(node, card, bytes - away);
    if (!account_has_room(node, card, bytes - away)) return SIM_NO_MEMORY;
    if (!limits_allow(node, card, process, bytes - away)) return SIM_NO_MEMORY;
    int64_t index = new_piece(&node->pieces);
    if (index < 0) return SIM_NO_ROOM;
    struct piece *piece = &node->pieces.piece[index];
    enum sim_result result = add_hold(node, process, (u32)index);
    if (result != SIM_OK) {
        piece->next_free = node->pieces.free;
        node->pieces.free = (u32)index + 1;
        return result;
    }
    piece->generation++;
    piece->card = card;
    piece->kind = kind;
    piece->bytes = bytes;
    piece->away = away;
    piece->used = ++node->pieces.uses;
    piece->owner = process;
    piece->owner_pid = process->pid;
    node->pieces.in_use++;
    account_take(node, card, process, kind, bytes - away);
    *id = id_of(&node->pieces, (u32)index);
    return SIM_OK;
}

enum sim_result piece_hold(struct node *node, struct process *process, u64 id) {
    int64_t index = index_of(&node->pieces, id);
    return hold_of(&node->pieces, index, process) ? add_hold(node, process, (u32)index) : SIM_UNKNOWN;
}

enum sim_result piece_give(struct node *node, struct process *process, u64 id) {
    struct hold *hold = hold_of(&node->pieces, index_of(&node->pieces, id), process);
    if (!hold) return SIM_UNKNOWN;
    if (--hold->count == 0) drop_hold(node, hold);
    return SIM_OK;
}

/* The first half of a token identifies the piece; the second is a secret known to its recipients. */
static bool make_token(struct piece *piece, u64 id) {
    memcpy(piece->token.bytes, &id, sizeof id);
    size_t rest = sizeof piece->token - sizeof id;
    piece->shared = getrandom(piece->token.bytes + sizeof id, rest, 0) == (ssize_t)rest;
    return piece->shared;
}

enum sim_result piece_share(struct node *node, struct process *process, u64 id, int *fd, struct sim_token *token) {
    int64_t index = index_of(&node->pieces, id);
    if (!hold_of(&node->pieces, index, process)) return SIM_UNKNOWN;
    struct piece *piece = &node->pieces.piece[index];
    if (*fd >= 0 && piece->kept < 0) {
        if (node->pieces.kept >= node->most_of_a_kind) return SIM_NO_ROOM;
        piece->kept = *fd;
        *fd = -1;
        node->pieces.kept++;
    }
    if (!piece->shared && !make_token(piece, id)) return SIM_NO_ROOM;
    *token = piece->token;
    return SIM_OK;
}

enum sim_result piece_open(struct node *node, struct process *process, const struct sim_token *token,
                           struct opened *opened) {
    u64 id;
    memcpy(&id, token->bytes, sizeof id);
    int64_t index = index_of(&node->pieces, id);
    if (index < 0) return SIM_UNKNOWN;
    const struct piece *piece = &node->pieces.piece[index];
    if (!piece->shared || memcmp(&piece->token, token, sizeof *token)) return SIM_UNKNOWN;
    if (atomic_load(&node->file->card[piece->card].live.health) == SIM_LOST) return SIM_CARD_LOST;
    *opened = (struct opened){
        .id = id, .bytes = piece->bytes, .card = piece->card, .owner_pid = piece->owner_pid, .kept = piece->kept};
    return add_hold(node, process, (u32)index);
}

bool piece_is_context(const struct node *node, u64 id) {
    int64_t index = index_of(&node->pieces, id);
    return index >= 0 && node->pieces.piece[index].kind == SIM_CONTEXT;
}

/* ---- checkpoint and restore -------------------------------------------------------------------------------------- */

bool pieces_can_go(const struct node *node, const struct process *process) {
    const struct hold *hold;
    LIST_FOREACH(hold, &process->holds, in_process) {
        const struct piece *piece = &node->pieces.piece[hold->piece];
        const bool is_alone = piece->owner == process && !LIST_NEXT(LIST_FIRST(&piece->holds), in_piece);
        if (piece->kind == SIM_MANAGED || !is_alone) return false;
    }
    return true;
}

u64 pieces_bytes(const struct node *node, const struct process *process) {
    const struct hold *hold;
    u64 bytes = 0;
    LIST_FOREACH(hold, &process->holds, in_process) bytes += node->pieces.piece[hold->piece].bytes;
    return bytes;
}

void pieces_go(struct node *node, struct process *process) {
    const struct hold *hold;
    LIST_FOREACH(hold, &process->holds, in_process) {
        struct piece *piece = &node->pieces.piece[hold->piece];
        account_discharge(node, piece->card, process, piece->kind, piece->bytes);
        account_return(node, piece->card, piece->bytes);
        piece->away = piece->bytes;
    }
}

bool pieces_can_come(struct node *node, const struct process *process) {
    u64 bytes[SIM_CARDS] = {0};
    const struct hold *hold;
    LIST_FOREACH(hold, &process->holds, in_process)
    bytes[node->pieces.piece[hold->piece].card] += node->pieces.piece[hold->piece].bytes;
    for (u32 card = 0; card < node->file->cards; card++)
        if (bytes[card] &&
            !(account_has_room(node, card, bytes[card]) && limits_allow(node, card, process, bytes[card])))
            return false;
    return true;
}

void pieces_come(struct node *node, struct process *process) {
    const struct hold *hold;
    LIST_FOREACH(hold, &process->holds, in_process) {
        struct piece *piece = &node->pieces.piece[hold->piece];
        account_take(node, piece->card, process, piece->kind, piece->bytes);
        piece->away = 0;
    }
}

void pieces_forget(struct node *node, struct process *process) {
    while (!LIST_EMPTY(&process->holds)) drop_hold(node, LIST_FIRST(&process->holds));
}
