#include "accounts.h"

static struct sim_live *live_of(const struct node *node, u32 card) { return &node->file->card[card].live; }

static void raise_to(_Atomic u64 *peak, u64 value) {
    if (atomic_load_explicit(peak, memory_order_relaxed) < value)
        atomic_store_explicit(peak, value, memory_order_relaxed);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

u64 account_free(const struct node *node, u32 card) {
    const struct sim_model *model = &node->file->card[card].model;
    return model->memory - model->reserved - atomic_load(&live_of(node, card)->used);
}

bool account_has_room(const struct node *node, u32 card, u64 bytes) { return bytes <= account_free(node, card); }

void account_show(struct node *node, u32 card, const struct account *account) {
    struct sim_live *live = live_of(node, card);
    if (account->row < 0) return;
    atomic_store(&live->row_bytes[account->row], account->bytes);
    raise_to(&live->row_peak[account->row], account->bytes);
}

void account_take(struct node *node, u32 card, struct process *process, u32 kind, u64 bytes) {
    struct sim_live *live = live_of(node, card);
    u64 used = atomic_load(&live->used) + bytes;
    atomic_store(&live->used, used);
    raise_to(&live->peak, used);
    process->account[card].bytes += bytes;
    if (kind == SIM_MANAGED) process->account[card].managed += bytes;
    account_show(node, card, &process->account[card]);
}

void account_discharge(struct node *node, u32 card, struct process *process, u32 kind, u64 bytes) {
    process->account[card].bytes -= bytes;
    if (kind == SIM_MANAGED) process->account[card].managed -= bytes;
    account_show(node, card, &process->account[card]);
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
