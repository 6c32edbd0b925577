#include "accounts.h"

static struct sim_live *live_of(const struct node *node, u32 card) { return &node->file->card[card].live; }

static void raise_to(_Atomic u64 *peak, u64 value) {
    if (atomic_load_explicit(peak, memory_order_relaxed) < value)
        atomic_store_explicit(peak, value, memory_order_relaxed);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

bool account_has_room(const struct node *node, u32 card, u64 bytes) {
    const struct sim_model *model = &node->file->card[card].model;
    return bytes <= model->memory - model->reserved - atomic_load(&live_of(node, card)->used);
}

static void show(struct node *node, u32 card, const struct account *account) {
    struct sim_live *live = live_of(node, card);
    if (account->row < 0) return;
    atomic_store(&live->row_bytes[account->row], account->bytes);
    raise_to(&live->row_peak[account->row], account->bytes);
}

void account_take(struct node *node, u32 card, struct process *process, u64 bytes) {
    struct sim_live *live = live_of(node, card);
    u64 used = atomic_load(&live->used) + bytes;
    atomic_store(&live->used, used);
    raise_to(&live->peak, used);
    process->account[card].bytes += bytes;
    show(node, card, &process->account[card]);
}

void account_discharge(struct node *node, u32 card, struct process *process, u64 bytes) {
    process->account[card].bytes -= bytes;
    show(node, card, &process->account[card]);
}

void account_return(struct node *node, u32 card, u64 bytes) { atomic_fetch_sub(&live_of(node, card)->used, bytes); }

void account_reset_peaks(struct node *node) {
    for (u32 card = 0; card < node->file->cards; card++) {
        struct sim_live *live = live_of(node, card);
        atomic_store(&live->peak, atomic_load(&live->used));
        for (u32 row = 0; row < SIM_ROWS; row++) atomic_store(&live->row_peak[row], atomic_load(&live->row_bytes[row]));
    }
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static int free_row(const struct node *node, u32 card) {
    for (int row = 0; row < SIM_ROWS; row++)
        if (!node->in_row[card][row]) return row;
    return -1;
}

static void begin_row(struct node *node, u32 card, struct process *process, int row) {
    struct account *account = &process->account[card];
    struct sim_live *live = live_of(node, card);
    node_advance(node, card);
    sim_row_reset(&node->lines[card], (u32)row);
    account->row = row;
    account->received_before = sim_share_of(&node->lines[card], (u32)row, NULL).received;
    node->in_row[card][row] = process;
    show(node, card, account);
    atomic_store(&live->pid[row], process->pid);
}

static void end_row(struct node *node, u32 card, struct account *account) {
    struct sim_live *live = live_of(node, card);
    int row = account->row;
    node_advance(node, card); /* what ran until now did run */
    sim_row_reset(&node->lines[card], (u32)row);
    account->row = -1;
    node->in_row[card][row] = NULL;
    atomic_store(&live->pid[row], 0);
    atomic_store(&live->row_bytes[row], 0);
    atomic_store(&live->row_peak[row], 0);
    atomic_store(&live->fault[row], 0);
}

u64 account_busy(const struct node *node, u32 card, u32 row) {
    return sim_share_of(&node->lines[card], row, NULL).received -
           node->in_row[card][row]->account[card].received_before;
}

void account_fail(struct node *node, u32 card, u32 row, u32 result) {
    if (!node->in_row[card][row]) return;
    atomic_store(&live_of(node, card)->fault[row], result);
    node_advance(node, card);
    sim_row_reset(&node->lines[card], row);
}

/* ---- contexts --------------------------------------------------------------------------------------------------- */

static enum sim_result first_context(struct node *node, u32 card, struct process *process) {
    int row = free_row(node, card);
    if (row < 0) return SIM_NO_ROOM;
    u64 bytes = node->file->card[card].model.context;
    enum sim_result result = piece_take(node, process, card, SIM_CONTEXT, bytes, &process->account[card].context);
    if (result == SIM_OK) begin_row(node, card, process, row);
    return result;
}

enum sim_result account_attach(struct node *node, u32 card, struct process *process) {
    struct account *account = &process->account[card];
    if (atomic_load(&live_of(node, card)->health) == SIM_LOST) return SIM_CARD_LOST;
    if (account->contexts == UINT32_MAX) return SIM_NO_ROOM;
    enum sim_result result = account->contexts ? SIM_OK : first_context(node, card, process);
    if (result == SIM_OK) account->contexts++;
    return result;
}

enum sim_result account_detach(struct node *node, u32 card, struct process *process) {
    struct account *account = &process->account[card];
    if (!account->contexts) return SIM_MISUSED;
    if (--account->contexts) return SIM_OK;
    end_row(node, card, account);
    return piece_give(node, process, account->context);
}

void account_forget(struct node *node, struct process *process) {
    for (u32 card = 0; card < node->file->cards; card++) {
        if (process->account[card].contexts) end_row(node, card, &process->account[card]);
        process->account[card].contexts = 0;
    }
    pieces_forget(node, process);
}
