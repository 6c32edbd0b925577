#include "contexts.h"

#include "accounts.h"

static int free_row(const struct node *node, u32 card) {
    for (int row = 0; row < SIM_ROWS; row++)
        if (!node->in_row[card][row]) return row;
    return -1;
}

static void begin_row(struct node *node, u32 card, struct process *process, int row) {
    struct account *account = &process->account[card];
    struct sim_live *live = &node->file->card[card].live;
    node_advance(node, card);
    sim_row_reset(&node->lines[card], (u32)row);
    account->row = row;
    account->received_before = sim_share_of(&node->lines[card], (u32)row, NULL).received;
    node->in_row[card][row] = process;
    account_show(node, card, account);
    atomic_store(&live->pid[row], process->pid);
}

static void end_row(struct node *node, u32 card, struct account *account) {
    struct sim_live *live = &node->file->card[card].live;
    int row = account->row;
    node_advance(node, card); /* account for what ran until now */
    sim_row_reset(&node->lines[card], (u32)row);
    account->row = -1;
    node->in_row[card][row] = NULL;
    atomic_store(&live->pid[row], 0);
    atomic_store(&live->row_bytes[row], 0);
    atomic_store(&live->row_peak[row], 0);
    atomic_store(&live->fault[row], 0);
    set_and_wake(&live->locked[row], 0);
}

static enum sim_result first_context(struct node *node, u32 card, struct process *process) {
    int row = free_row(node, card);
    if (row < 0) return SIM_NO_ROOM;
    u64 bytes = node->file->card[card].model.context;
    enum sim_result result = piece_take(node, process, card, SIM_CONTEXT, bytes, &process->account[card].context);
    if (result == SIM_OK) begin_row(node, card, process, row);
    return result;
}

enum sim_result context_attach(struct node *node, u32 card, struct process *process) {
    struct account *account = &process->account[card];
    if (atomic_load(&node->file->card[card].live.health) == SIM_LOST) return SIM_CARD_LOST;
    if (account->contexts == UINT32_MAX) return SIM_NO_ROOM;
    enum sim_result result = account->contexts ? SIM_OK : first_context(node, card, process);
    if (result == SIM_OK) account->contexts++;
    return result;
}

enum sim_result context_detach(struct node *node, u32 card, struct process *process) {
    struct account *account = &process->account[card];
    if (!account->contexts) return SIM_MISUSED;
    if (--account->contexts) return SIM_OK;
    end_row(node, card, account);
    return piece_give(node, process, account->context);
}

void contexts_forget(struct node *node, struct process *process) {
    for (u32 card = 0; card < node->file->cards; card++) {
        if (process->account[card].contexts) end_row(node, card, &process->account[card]);
        process->account[card].contexts = 0;
    }
    pieces_forget(node, process);
    process->state = SIM_IS_RUNNING;
}
