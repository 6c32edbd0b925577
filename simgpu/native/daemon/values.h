/* Reads the values of node.conf, each whole: false, and what it should go to is unspecified, if the text is none. */
#pragma once

#include "../common/node_file.h"

/* Digits at the beginning of `text`, decimal or 0x. What follows them; NULL where there are none or too many. */
const char *read_number(const char *text, u64 *value);

/* Bytes: 512, 80 MiB, 141GiB. */
bool read_size(const char *text, u64 *bytes);

/* CPUs below `most`: 0-31,64-95. Adds their bits to `cpus`. */
bool read_cpus(const char *text, u64 *cpus, u64 most);

/* The cards at the other ends of links: 1 1 2 -. */
bool read_links(const char *text, int32_t links[SIM_LINKS], u32 *count);
