/* Connections of processes. */
#pragma once

#include "node.h"

/* Listens at `path`. 0, or -1 and errno. */
int clients_listen(struct node *node, const char *path);
