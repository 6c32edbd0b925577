/* What people and tests tell simgpud: one line of text, one answer. */
#pragma once

#include "node.h"

/* Listens at `path`; a reload reads `config` again. 0, or -1 and errno. */
int control_listen(struct node *node, const char *path, const char *config);
