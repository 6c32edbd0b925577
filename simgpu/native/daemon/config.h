/* Parser for a node's node.conf. */
#pragma once

#include "../common/node_file.h"

struct config {
    char driver[32];
    u32 cuda, cards;
    struct sim_model card[SIM_CARDS];
};

/* On failure `error` is one line: what, where, what to do. `text` has `length` arbitrary bytes. */
bool config_read(struct config *config, const char *text, size_t length, char *error, size_t room);

/* The same from a file of at most 1 MiB. */
bool config_read_file(struct config *config, const char *path, char *error, size_t room);
