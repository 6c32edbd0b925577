#include "checkpoints.h"

#include "accounts.h"
#include "namespaces.h"

u32 checkpoint_card(const struct node *node, const struct process *process) {
    u32 card = 0;
    while (card < node->file->cards && !process->account[card].contexts) card++;
    return card;
}

struct process *checkpoint_process(const struct node *node, const struct process *caller, u64 pid) {
    struct process *process;
    LIST_FOREACH(process, &node->processes, next)
    if (pid && pid_as_seen_by(caller->pid, process->pid) == pid) break;
    return process && checkpoint_card(node, process) < node->file->cards ? process : NULL;
}

static void lock_calls(struct node *node, struct process *process, u32 locked) {
    for (u32 card = 0; card < node->file->cards; card++)
        if (process->account[card].contexts)
            set_and_wake(&node->file->card[card].live.locked[process->account[card].row], locked);
}

/* Whether the cards have completed everything that it launched. */
static bool is_done(struct node *node, const struct process *process) {
    for (u32 card = 0; card < node->file->cards; card++) {
        if (!process->account[card].contexts) continue;
        const u32 row = (u32)process->account[card].row;
        node_advance(node, card);
        const u64 published = atomic_load(&node->lines[card].row[row].published);
        if (sim_share_of(&node->lines[card], row, NULL).received < published) return false;
    }
    return true;
}

static enum sim_result lock(struct node *node, struct process *process) {
    if (process->state != SIM_IS_RUNNING && process->state != SIM_LOCKING) return SIM_MISUSED;
    if (process->state == SIM_IS_RUNNING) lock_calls(node, process, 1);
    process->state = is_done(node, process) ? SIM_IS_LOCKED : SIM_LOCKING;
    return SIM_OK;
}

static enum sim_result unlock(struct node *node, struct process *process) {
    if (process->state != SIM_IS_LOCKED && process->state != SIM_LOCKING) return SIM_MISUSED;
    process->state = SIM_IS_RUNNING;
    lock_calls(node, process, 0);
    return SIM_OK;
}

static enum sim_result go(struct node *node, struct process *process, bool now) {
    if (process->state != SIM_IS_LOCKED) return SIM_MISUSED;
    if (!pieces_can_go(node, process)) return SIM_REFUSED;
    if (now) {
        pieces_go(node, process);
        process->state = SIM_IS_AWAY;
    }
    return SIM_OK;
}

static enum sim_result come(struct node *node, struct process *process, bool now) {
    if (process->state != SIM_IS_AWAY) return SIM_MISUSED;
    if (!pieces_can_come(node, process)) return SIM_NO_MEMORY;
    if (now) {
        pieces_come(node, process);
        process->state = SIM_IS_LOCKED;
    }
    return SIM_OK;
}

enum sim_result checkpoint_step(struct node *node, struct process *process, u32 step) {
    /* The process that began the lock may have died since: any later request completes it once the work is done. */
    if (process->state == SIM_LOCKING && is_done(node, process)) process->state = SIM_IS_LOCKED;
    switch (step) {
    case SIM_LOOK: return SIM_OK;
    case SIM_LOCK: return process->state == SIM_IS_LOCKED ? SIM_OK : lock(node, process);
    case SIM_UNLOCK: return unlock(node, process);
    case SIM_MAY_GO:
    case SIM_GO: return go(node, process, step == SIM_GO);
    case SIM_MAY_COME:
    case SIM_COME: return come(node, process, step == SIM_COME);
    default: return SIM_MISUSED;
    }
}
