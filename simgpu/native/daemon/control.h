/* Control commands to simgpud, for users and tests: one line of text, one reply. */
#pragma once

#include "node.h"

/* Listens at `path`; a reload rereads `config`. 0, or -1 and errno. */
int control_listen(struct node *node, const char *path, const char *config);
