/* Managed memory on cards that page it: what is on the card, and what left for the host. */
#pragma once

#include "pieces.h"

struct paged {
    u64 came, left; /* bytes, to the card and off it */
};

/* The process uses its managed memory of the card: all of it that has room comes there. What was not used for longest
 * leaves for it, whose ever it is. Of a card that does not page, all of it is there always. */
struct paged managed_use(struct node *node, struct process *process, u32 card);

/* Has managed memory leave, so that so many bytes are free; nothing leaves where that is not enough. */
void managed_make_room(struct node *node, u32 card, u64 bytes);

/* How much of so many new bytes has no room on the card. */
u64 managed_on_host(const struct node *node, u32 card, u64 bytes);
