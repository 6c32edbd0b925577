/* Reads what a node is from the text of its node.conf. */
#pragma once

#include "../common/node_file.h"

struct config {
    char driver[32];
    u32 cuda, cards;
    struct sim_model card[SIM_CARDS];
};

/* True; or false and `error` is one line: what, where, what to do. `text` has `length` bytes, any bytes. */
bool config_read(struct config *config, const char *text, size_t length, char *error, size_t room);

/* The same from a file of at most a megabyte. */
bool config_read_file(struct config *config, const char *path, char *error, size_t room);
