/* Parsers for the values of node.conf. Each must match the whole text; otherwise they return false, and the result is
 * unspecified. */
#pragma once

#include "../common/node_file.h"

/* Parses leading digits of `text`, decimal or 0x. Returns the rest; NULL if there are none or too many. */
const char *read_number(const char *text, u64 *value);

/* Bytes: 512, 80 MiB, 141GiB. */
bool read_size(const char *text, u64 *bytes);

/* CPUs below `most`: 0-31,64-95. Sets their bits in `cpus`. */
bool read_cpus(const char *text, u64 *cpus, u64 most);

/* The cards at the far ends of links: 1 1 2 -. */
bool read_links(const char *text, int32_t links[SIM_LINKS], u32 *count);
