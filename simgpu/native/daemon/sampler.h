/* Advances the cards ten times a second and records their activity, while there are clients. */
#pragma once

#include "node.h"

/* Creates the timer. 0, or -1 and errno. */
int sampling_begin(struct node *node);

/* Discards earlier activity: the first client has connected, or the cards are new. */
void sampling_restart(struct node *node);
