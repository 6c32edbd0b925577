/* The connections of processes. */
#pragma once

#include "node.h"

/* Listens at `path`. 0, or -1 and errno. */
int clients_listen(struct node *node, const char *path);

/* Closes all connections of a process that ended. */
void clients_hang_up(struct node *node, struct process *process);

/* Whether the process has a connection that was in use before. */
bool clients_speak_for(const struct process *process);
