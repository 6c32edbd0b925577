/* A container's config.json: whether it asks for us, and the cards in it. Pure: the file and the kernel's list are
 * passed in. */
#pragma once

#include "json.h"

/* Whether the container asks for a part of a card: by a variable PARTAGE_… or DOCKER_RESOURCE_PARTAGE… of its process,
 * or an annotation partage.dev/…. */
bool config_asks(struct json config);

/* Major numbers of character devices that are cards. The kernel assigns none above these. */
struct majors {
    bool is_card[512];
};

/* The numbers that /proc/devices gives to nvidia, and NVIDIA's fixed number. */
struct majors majors_of(const char *proc_devices);

/* Removes everything that gives the container a card: device nodes, the rules that allow them, mounts, and NVIDIA's
 * hooks. All other bytes stay unchanged. `config` is what json_check found in `text`, and is invalid afterwards.
 * Returns the number of bytes left, which equals `bytes` if there is no card. */
size_t config_remove_cards(struct json config, char *text, size_t bytes, struct majors majors);
