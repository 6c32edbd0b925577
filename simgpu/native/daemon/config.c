#include "config.h"

#include "values.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum form { TEXT, NUMBER, SIGNED, SIZE, CPUS, LINKS };

struct field {
    const char *name;
    enum form form;
    size_t at, room;
};

#define FIELD(name, form) {#name, form, offsetof(struct sim_model, name), sizeof((struct sim_model *)0)->name}
static const struct field FIELDS[] = {
    FIELD(name, TEXT),
    FIELD(uuid, TEXT),
    FIELD(serial, TEXT),
    FIELD(board, TEXT),
    FIELD(pci, TEXT),
    FIELD(domain, NUMBER),
    FIELD(bus, NUMBER),
    FIELD(device, NUMBER),
    FIELD(pci_device_id, NUMBER),
    FIELD(pci_subsystem_id, NUMBER),
    FIELD(minor, NUMBER),
    FIELD(architecture, NUMBER),
    FIELD(cc_major, NUMBER),
    FIELD(cc_minor, NUMBER),
    FIELD(sms, NUMBER),
    FIELD(threads_per_sm, NUMBER),
    FIELD(sm_clock_mhz, NUMBER),
    FIELD(memory_clock_mhz, NUMBER),
    FIELD(bus_width_bits, NUMBER),
    FIELD(power_limit_mw, NUMBER),
    FIELD(power_idle_mw, NUMBER),
    FIELD(temperature_c, NUMBER),
    FIELD(ecc, NUMBER),
    FIELD(memory, SIZE),
    FIELD(reserved, SIZE),
    FIELD(context, SIZE),
    FIELD(module, SIZE),
    FIELD(graph_node, SIZE),
    FIELD(memory_rate, SIZE),
    FIELD(bus_rate, SIZE),
    FIELD(fault_rate, SIZE),
    FIELD(evict_rate, SIZE),
    FIELD(numa, SIGNED),
    FIELD(pcie_switch, SIGNED),
    FIELD(cpus, CPUS),
    FIELD(nvlinks, NUMBER),
    FIELD(link_to, LINKS),
    FIELD(nvlink_version, NUMBER),
    FIELD(mig_capable, NUMBER),
    FIELD(mig_enabled, NUMBER),
    FIELD(gpu_instance, NUMBER),
    FIELD(compute_instance, NUMBER),
    FIELD(mig_slices, NUMBER),
    FIELD(mig_profile, TEXT),
};
#undef FIELD

struct reading {
    struct config *config;
    struct sim_model *card; /* NULL: before the first section */
    unsigned line, section; /* line numbers */
    char *error;
    size_t room;
};

__attribute__((format(printf, 3, 4))) static bool wrong(struct reading *reading, const char *key, const char *format,
                                                        ...) {
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(reading->error, reading->room, "node.conf:%u: %.40s: %s", reading->line, key, what);
    for (char *c = reading->error; *c; c++)
        if (!isprint((unsigned char)*c)) *c = '?';
    return false;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static bool set_number(struct reading *reading, const struct field *field, const char *text) {
    u64 value;
    bool minus = field->form == SIGNED && *text == '-';
    const char *end = read_number(text + minus, &value);
    u64 most = field->form == SIGNED ? INT32_MAX : UINT32_MAX;
    if (!end || *end || value > most) return wrong(reading, field->name, "`%.40s` is no number of 32 bits", text);
    *(u32 *)((char *)reading->card + field->at) = minus ? -(u32)value : (u32)value;
    return true;
}

static bool set_value(struct reading *reading, const struct field *field, const char *text) {
    void *at = (char *)reading->card + field->at;
    switch (field->form) {
    case TEXT:
        if (strlen(text) >= field->room)
            return wrong(reading, field->name, "is longer than %zu bytes", field->room - 1);
        memset(at, 0, field->room);
        memcpy(at, text, strlen(text));
        return true;
    case SIZE:
        return read_size(text, at) ||
               wrong(reading, field->name, "`%.40s` is no number of bytes; write 141 GiB, or 80 MiB", text);
    case CPUS:
        memset(at, 0, field->room);
        return read_cpus(text, at, field->room * 8) ||
               wrong(reading, field->name, "`%.40s` is no list of CPUs; write 0-31,64-95", text);
    case LINKS:
        return read_links(text, at, &reading->card->nvlinks) ||
               wrong(reading, field->name, "`%.40s` are no %d cards or fewer; write 1 1 2 -", text, SIM_LINKS);
    default: return set_number(reading, field, text);
    }
}

/* ---- sections --------------------------------------------------------------------------------------------------- */

/* Missing settings are detected at the end of a section; the error names the line where it began. */
static bool finish_card(struct reading *reading) {
    struct sim_model *card = reading->card;
    unsigned here = reading->line;
    if (!card) return true;
    reading->line = reading->section;
    if (!*card->name) return wrong(reading, "name", "is missing in this section");
    if (!*card->uuid) return wrong(reading, "uuid", "is missing in this section");
    if (!card->memory) return wrong(reading, "memory", "is missing in this section");
    if (card->reserved > card->memory || card->context > card->memory - card->reserved)
        return wrong(reading, "memory", "is less than reserved and context together");
    for (const struct sim_model *other = reading->config->card; other < card; other++)
        if (!strcmp(other->uuid, card->uuid)) return wrong(reading, "uuid", "`%s` is an earlier card's", card->uuid);
    if (*card->pci && sscanf(card->pci, "%x:%x:%x", &card->domain, &card->bus, &card->device) != 3)
        return wrong(reading, "pci", "`%s` is no address; write 0000:18:00.0", card->pci);
    reading->line = here;
    return true;
}

/* An instance starts as a copy of its card: its section lists only differences. */
static bool begin_instance(struct reading *reading, const struct sim_model *before) {
    struct sim_model *card = reading->card;
    if (!before) return wrong(reading, "[mig]", "stands before any [card]");
    int32_t parent = before->parent == SIM_NO_PARENT ? (int32_t)(before - reading->config->card) : before->parent;
    struct sim_model *whole = &reading->config->card[parent];
    whole->mig_capable = whole->mig_enabled = 1;
    *card = *whole;
    card->parent = parent;
    card->mig_capable = card->mig_enabled = card->nvlinks = 0;
    card->memory = card->reserved = 0;
    *card->uuid = 0;
    return true;
}

static bool begin_card(struct reading *reading, const char *section) {
    struct sim_model *before = reading->card;
    bool instance = !strcmp(section, "[mig]");
    if (!finish_card(reading)) return false;
    if (!instance && strcmp(section, "[card]"))
        return wrong(reading, section, "no such section; there are [card] and [mig]");
    if (reading->config->cards == SIM_CARDS)
        return wrong(reading, section, "is one more than the %d that a node may have", SIM_CARDS);
    reading->section = reading->line;
    reading->card = &reading->config->card[reading->config->cards++];
    *reading->card = (struct sim_model){.parent = SIM_NO_PARENT, .numa = -1, .pcie_switch = -1};
    memset(reading->card->link_to, 0xff, sizeof reading->card->link_to);
    return !instance || begin_instance(reading, before);
}

static bool set_of_node(struct reading *reading, const char *key, const char *value) {
    u64 number;
    const char *end;
    if (!strcmp(key, "driver")) {
        if (strlen(value) >= sizeof reading->config->driver || !*value)
            return wrong(reading, key, "`%.40s` is no version; write 580.95.05", value);
        strcpy(reading->config->driver, value);
        return true;
    }
    if (strcmp(key, "cuda"))
        return wrong(reading, key, "no such key before the first [card]; there are driver and cuda");
    if (!(end = read_number(value, &number)) || *end || number > INT_MAX)
        return wrong(reading, key, "`%.40s` is no version; write 13000", value);
    reading->config->cuda = (u32)number;
    return true;
}

static bool set(struct reading *reading, const char *key, const char *value) {
    if (!reading->card) return set_of_node(reading, key, value);
    for (size_t n = 0; n < sizeof FIELDS / sizeof *FIELDS; n++)
        if (!strcmp(FIELDS[n].name, key)) return set_value(reading, &FIELDS[n], value);
    return wrong(reading, key, "no such key of a card");
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static char *trimmed(char *text) {
    while (isspace((unsigned char)*text)) text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) *--end = 0;
    return text;
}

static bool read_line(struct reading *reading, char *line) {
    char *comment = strchr(line, '#');
    if (comment) *comment = 0;
    line = trimmed(line);
    if (!*line) return true;
    if (*line == '[') return begin_card(reading, line);
    char *value = strchr(line, '=');
    if (!value) return wrong(reading, line, "is neither a section nor `key = value`");
    *value++ = 0;
    return set(reading, trimmed(line), trimmed(value));
}

static bool finish_node(struct reading *reading) {
    const struct config *config = reading->config;
    if (!finish_card(reading)) return false;
    if (!*config->driver) return wrong(reading, "driver", "is missing before the first [card]; add driver = 580.95.05");
    if (!config->cuda) return wrong(reading, "cuda", "is missing before the first [card]; add cuda = 13000");
    for (u32 card = 0; card < config->cards; card++)
        for (u32 link = 0; link < SIM_LINKS; link++)
            if (config->card[card].link_to[link] >= (int32_t)config->cards)
                return wrong(reading, "link_to", "card %u is linked to card %d, which is not there", card,
                             config->card[card].link_to[link]);
    return true;
}

bool config_read(struct config *config, const char *text, size_t length, char *error, size_t room) {
    struct reading reading = {.config = config, .error = error, .room = room};
    char line[512];
    *config = (struct config){0};
    for (const char *end = text + length; text < end;) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t bytes = (size_t)((stop ? stop : end) - text);
        reading.line++;
        if (bytes >= sizeof line || memchr(text, 0, bytes))
            return wrong(&reading, "line", "is no line of text, or too long");
        memcpy(line, text, bytes);
        line[bytes] = 0;
        if (!read_line(&reading, line)) return false;
        text += bytes + (stop != NULL);
    }
    return finish_node(&reading);
}

bool config_read_file(struct config *config, const char *path, char *error, size_t room) {
    static char text[1 << 20];
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    bool is_read = file && !ferror(file) && length < sizeof text;
    if (!is_read)
        snprintf(error, room, "%s: %s; write it first", path, file ? "is no text of a megabyte" : strerror(errno));
    if (file) fclose(file);
    return is_read && config_read(config, text, length, error, room);
}
