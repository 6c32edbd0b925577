#include "faults.h"

#include "accounts.h"

/* Results of the affected process's calls, as CUDA's numbers. */
enum result {
    DEVICE_UNAVAILABLE = 46,
    ECC_UNCORRECTABLE = 214,
    NVLINK_UNCORRECTABLE = 220,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719
};

/* Event types, as NVML's bits. */
enum event { SINGLE_BIT_ECC = 0x1, DOUBLE_BIT_ECC = 0x2, CRITICAL_XID = 0x8 };

enum scope { NO_PROCESS, CULPRIT, ALL_PROCESSES, CARD };

/* The effect of each XID, by NVIDIA's list; others are only reported. */
static const struct xid {
    u32 number;
    enum scope scope;
    enum result result;
} XIDS[] = {
    {13, CULPRIT, LAUNCH_FAILED},              /* graphics engine exception: a program error */
    {31, CULPRIT, ILLEGAL_ADDRESS},            /* MMU fault: an invalid access */
    {43, CULPRIT, LAUNCH_FAILED},              /* a program's work was stopped; the card continues */
    {45, CULPRIT, LAUNCH_FAILED},              /* the driver cleaned up after a program */
    {48, ALL_PROCESSES, ECC_UNCORRECTABLE},    /* double bit error: every process computing there may be affected */
    {63, NO_PROCESS, 0},                       /* row remapping recorded, takes effect at the next reset */
    {64, NO_PROCESS, 0},                       /* recording it failed: the card continues, but should be drained */
    {68, CULPRIT, LAUNCH_FAILED},              /* video decoder exception */
    {74, ALL_PROCESSES, NVLINK_UNCORRECTABLE}, /* a link failed: communicating processes cannot know what arrived */
    {79, CARD, DEVICE_UNAVAILABLE},            /* the card fell off the bus */
    {94, CULPRIT, ECC_UNCORRECTABLE},          /* memory error contained to one program */
    {95, ALL_PROCESSES, ECC_UNCORRECTABLE},    /* uncontained memory error */
    {119, CARD, DEVICE_UNAVAILABLE},           /* the card's own processor does not respond: only a reset helps */
};

static const struct xid *meaning_of(u32 number) {
    for (size_t n = 0; n < sizeof XIDS / sizeof *XIDS; n++)
        if (XIDS[n].number == number) return &XIDS[n];
    return NULL;
}

static void fail_rows(struct node *node, u32 card, const struct process *only, u32 result) {
    for (u32 row = 0; row < SIM_ROWS; row++)
        if (!only || node->in_row[card][row] == only) account_fail(node, card, row, result);
}

static void tell_xid(struct node *node, u32 card, u32 xid) {
    atomic_store(&node->file->card[card].live.last_xid, xid);
    node_tell(node, card, CRITICAL_XID, xid);
}

static bool is_part_of(const struct node *node, u32 part, u32 card) {
    return part == card || node->file->card[part].model.parent == (int32_t)card;
}

void fault_lose(struct node *node, u32 card, u32 xid) {
    for (u32 part = 0; part < node->file->cards; part++) {
        if (!is_part_of(node, part, card)) continue;
        atomic_store(&node->file->card[part].live.health, SIM_LOST);
        fail_rows(node, part, NULL, DEVICE_UNAVAILABLE);
        node_advance(node, part);
        atomic_store(&node->lines[part].frozen, 1);
    }
    tell_xid(node, card, xid);
}

void fault_restore(struct node *node, u32 card) {
    for (u32 part = 0; part < node->file->cards; part++) {
        if (!is_part_of(node, part, card)) continue;
        node_advance(node, part); /* no process receives the time during which it was frozen */
        atomic_store(&node->lines[part].frozen, 0);
        atomic_store(&node->file->card[part].live.health, SIM_HEALTHY);
        atomic_store(&node->file->card[part].live.last_xid, 0);
    }
}

void fault_xid(struct node *node, u32 card, u32 xid, const struct process *process) {
    const struct xid *meaning = meaning_of(xid);
    enum scope scope = meaning ? meaning->scope : NO_PROCESS;
    if (scope == CARD) {
        fault_lose(node, card, xid);
        return;
    }
    if (scope != NO_PROCESS) fail_rows(node, card, scope == CULPRIT ? process : NULL, meaning->result);
    tell_xid(node, card, xid);
}

void fault_blind(struct node *node, u32 card, enum sim_blindness blind) {
    for (u32 part = 0; part < node->file->cards; part++)
        if (is_part_of(node, part, card)) atomic_store(&node->file->card[part].live.blind, blind);
}

void fault_ecc(struct node *node, u32 card, bool corrected, u64 count) {
    struct sim_live *live = &node->file->card[card].live;
    atomic_fetch_add(corrected ? &live->ecc_corrected : &live->ecc_uncorrected, count);
    node_tell(node, card, corrected ? SINGLE_BIT_ECC : DOUBLE_BIT_ECC, 0);
}

void fault_stick(struct node *node, u32 card, const struct process *process) {
    for (u32 row = 0; row < SIM_ROWS; row++)
        if (!process || node->in_row[card][row] == process)
            atomic_fetch_add(&node->file->card[card].live.stuck[row], 1);
}
