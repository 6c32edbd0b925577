#include "managed.h"

#include "accounts.h"

#define STEP (2 * SIM_MIB)

static u64 here(const struct piece *piece) { return piece->bytes - piece->away; }

static u64 less(u64 one, u64 other) { return one < other ? one : other; }

static bool may_leave(const struct piece *piece, u32 card) {
    return piece->owner && piece->kind == SIM_MANAGED && piece->card == card && here(piece);
}

static bool pages(const struct node *node, u32 card) { return node->file->card[card].model.fault_rate; }

static void leave(struct node *node, struct piece *piece, u64 bytes) {
    piece->away += bytes;
    account_discharge(node, piece->card, piece->owner, SIM_MANAGED, bytes);
    account_return(node, piece->card, bytes);
}

static struct piece *unused_longest(const struct node *node, u32 card, const struct piece *except) {
    struct piece *found = NULL;
    for (u32 n = 0; n < node->pieces.begun; n++) {
        struct piece *piece = &node->pieces.piece[n];
        if (piece == except || !may_leave(piece, card)) continue;
        if (!found || piece->used < found->used) found = piece;
    }
    return found;
}

static u64 make_room(struct node *node, u32 card, u64 bytes, const struct piece *except) {
    u64 left = 0;
    for (u64 free; (free = account_free(node, card)) < bytes;) {
        struct piece *piece = unused_longest(node, card, except);
        if (!piece) break;
        const u64 goes = less(here(piece), (bytes - free + STEP - 1) / STEP * STEP);
        leave(node, piece, goes);
        left += goes;
    }
    return left;
}

struct paged managed_use(struct node *node, struct process *process, u32 card) {
    struct paged paged = {0};
    struct hold *hold;
    if (!pages(node, card)) return paged;
    LIST_FOREACH(hold, &process->holds, in_process) {
        struct piece *piece = &node->pieces.piece[hold->piece];
        if (piece->owner != process || piece->kind != SIM_MANAGED || piece->card != card) continue;
        piece->used = ++node->pieces.uses;
        paged.left += make_room(node, card, piece->away, piece);
        const u64 comes = less(piece->away, account_free(node, card));
        piece->away -= comes;
        account_take(node, card, process, SIM_MANAGED, comes);
        paged.came += comes;
    }
    return paged;
}

void managed_make_room(struct node *node, u32 card, u64 bytes) {
    u64 most = account_free(node, card);
    if (!pages(node, card) || most >= bytes) return;
    for (u32 n = 0; n < node->pieces.begun; n++)
        if (may_leave(&node->pieces.piece[n], card)) most += here(&node->pieces.piece[n]);
    if (most >= bytes) make_room(node, card, bytes, NULL);
}

u64 managed_on_host(const struct node *node, u32 card, u64 bytes) {
    return pages(node, card) ? bytes - less(bytes, account_free(node, card)) : 0;
}
