#include "values.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *read_number(const char *text, u64 *value) {
    char *end;
    if (!isdigit((unsigned char)*text)) return NULL;
    errno = 0;
    *value = strtoull(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
    return errno ? NULL : end;
}

bool read_size(const char *text, u64 *bytes) {
    static const struct {
        const char *unit;
        unsigned shift;
    } UNITS[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    const char *unit = read_number(text, bytes);
    if (!unit) return false;
    while (*unit == ' ') unit++;
    for (size_t n = 0; n < sizeof UNITS / sizeof *UNITS; n++) {
        if (strcmp(unit, UNITS[n].unit)) continue;
        if (*bytes > UINT64_MAX >> UNITS[n].shift) return false;
        *bytes <<= UNITS[n].shift;
        return true;
    }
    return false;
}

bool read_cpus(const char *text, u64 *cpus, u64 most) {
    for (;; text++) {
        u64 first, last;
        if (!(text = read_number(text, &first))) return false;
        last = first;
        if (*text == '-' && !(text = read_number(text + 1, &last))) return false;
        if (first > last || last >= most) return false;
        for (u64 cpu = first; cpu <= last; cpu++) cpus[cpu / 64] |= 1ull << cpu % 64;
        if (!*text) return true;
        if (*text != ',') return false;
    }
}

bool read_links(const char *text, int32_t links[SIM_LINKS], u32 *count) {
    for (*count = 0; *text; (*count)++) {
        u64 card = 0;
        const char *end = *text == '-' ? text + 1 : read_number(text, &card);
        if (!end || card >= SIM_CARDS || *count == SIM_LINKS || (*end && *end != ' ')) return false;
        links[*count] = *text == '-' ? -1 : (int32_t)card;
        for (text = end; *text == ' ';) text++;
    }
    return true;
}
