/* Brings the cards to now ten times a second and writes down what they did, while there are clients. */
#pragma once

#include "node.h"

/* Makes the timer. 0, or -1 and errno. */
int sampling_begin(struct node *node);

/* The first client has come, or the cards are new: what was until now is forgotten. */
void sampling_restart(struct node *node);
