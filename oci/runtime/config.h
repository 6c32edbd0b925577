/* What a container's config.json says of us and of cards. Pure: the file and the kernel's list are given. */
#pragma once

#include "json.h"

/* Whether the container asks for a part of a card: a variable PARTAGE_… or DOCKER_RESOURCE_PARTAGE… of its process, or
 * an annotation partage.dev/…. */
bool config_asks(struct json config);

/* Which numbers of character devices are cards. The kernel gives none above these. */
struct majors {
    bool is_card[512];
};

/* What the kernel says in /proc/devices, and NVIDIA's fixed number. */
struct majors majors_of(const char *proc_devices);

/* Takes out what gives the container a card: device nodes, the rules that let it use them, mounts, and NVIDIA's hooks.
 * All else stays byte for byte as it was. `config` is what json_check found in `text`, and void afterwards. Returns how
 * many bytes are left: as many as there were if it has no card. */
size_t config_remove_cards(struct json config, char *text, size_t bytes, struct majors majors);
