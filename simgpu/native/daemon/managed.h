/* Managed memory on cards that page it: what is on the card, and what was evicted to the host. */
#pragma once

#include "pieces.h"

struct paged {
    u64 came, left; /* bytes, to the card and off it */
};

/* The process uses its managed memory of the card: as much as fits is paged in, evicting the least recently used memory
 * of any process. On a card that does not page, all of it is always present. */
struct paged managed_use(struct node *node, struct process *process, u32 card);

/* Evicts managed memory until that many bytes are free; evicts nothing if that is not enough. */
void managed_make_room(struct node *node, u32 card, u64 bytes);

/* How many of the new bytes do not fit on the card. */
u64 managed_on_host(const struct node *node, u32 card, u64 bytes);
