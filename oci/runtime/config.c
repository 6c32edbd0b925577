#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool starts(const char *text, size_t bytes, const char *with) {
    return bytes >= strlen(with) && !memcmp(text, with, strlen(with));
}

/* ---- our variables and annotations ------------------------------------------------------------------------------ */

static bool is_variable(struct json entry) {
    size_t bytes;
    char *text = json_text(entry, &bytes);
    const bool is_ours = text && (starts(text, bytes, "PARTAGE_") || starts(text, bytes, "DOCKER_RESOURCE_PARTAGE")) &&
                         memchr(text, '=', bytes);
    free(text);
    return is_ours;
}

static bool is_annotation(struct json key) {
    size_t bytes;
    char *text = json_text(key, &bytes);
    const bool is_ours = text && starts(text, bytes, "partage.dev/");
    free(text);
    return is_ours;
}

bool config_asks(struct json config) {
    const struct json environment = json_member(json_member(config, "process"), "env");
    for (struct json_walk walk = json_elements(environment); json_next(&walk);)
        if (is_variable(walk.value)) return true;
    for (struct json_walk walk = json_members(json_member(config, "annotations")); json_next(&walk);)
        if (is_annotation(walk.key)) return true;
    return false;
}

/* ---- device numbers of cards ------------------------------------------------------------------------------------ */

enum { NVIDIA = 195, MAJORS = sizeof((struct majors *)0)->is_card };

static bool is_major(const struct majors *majors, int64_t number) {
    return number >= 0 && number < MAJORS && majors->is_card[number];
}

struct majors majors_of(const char *proc_devices) {
    struct majors majors = {.is_card = {[NVIDIA] = true}};
    for (const char *line = proc_devices; line; line = strchr(line, '\n')) {
        char name[sizeof "nvidia"];
        unsigned number;
        line += *line == '\n';
        if (sscanf(line, "%u %6s", &number, name) == 2 && number < MAJORS && !strcmp(name, "nvidia"))
            majors.is_card[number] = true;
    }
    return majors;
}

/* The ranges from which the kernel assigns dynamic major numbers. */
static bool is_dynamic(int64_t number) { return (number >= 234 && number <= 254) || (number >= 384 && number <= 511); }

/* ---- recognizing cards ------------------------------------------------------------------------------------------ */

/* Normalizes a path as a runtime does, from the root: without doubled slashes, `.` and `..`, and here without the
 * leading slash. In place; returns the new length. */
static size_t clean_path(char *text, size_t bytes) {
    size_t left = 0;
    for (size_t at = 0, end; at < bytes; at = end + 1) {
        const char *slash = memchr(text + at, '/', bytes - at);
        end = slash ? (size_t)(slash - text) : bytes;
        const size_t size = end - at;
        if (!size || (size == 1 && text[at] == '.')) continue;
        if (size == 2 && text[at] == '.' && text[at + 1] == '.') {
            while (left && text[--left] != '/') continue;
            continue;
        }
        if (left) text[left++] = '/';
        memmove(text + left, text + at, size);
        left += size;
    }
    return left;
}

/* Includes what NVIDIA's runtime takes for a request: a mount below /var/run/nvidia-container-devices. */
static bool is_path(struct json value) {
    static const char *const begin[] = {"dev/nvidia", "dev/dxg", "run/nvidia-", "var/run/nvidia-"};
    size_t bytes;
    char *text = json_text(value, &bytes);
    bool is_card = false;
    if (text) bytes = clean_path(text, bytes);
    for (size_t i = 0; text && i < sizeof begin / sizeof *begin; i++) is_card |= starts(text, bytes, begin[i]);
    free(text);
    return is_card;
}

/* Whether a device node or rule is for character devices with a card's major number. */
static bool is_numbered(struct json entry, const struct majors *majors) {
    int64_t number;
    size_t bytes;
    char *type = json_text(json_member(entry, "type"), &bytes);
    const bool is_block = type && bytes == 1 && *type == 'b';
    free(type);
    return !is_block && json_integer(json_member(entry, "major"), &number) && is_major(majors, number);
}

static bool is_node(struct json entry, const struct majors *majors) {
    return is_path(json_member(entry, "path")) || is_numbered(entry, majors);
}

static bool is_rule(struct json entry, const struct majors *majors) {
    return json_is_true(json_member(entry, "allow")) && is_numbered(entry, majors);
}

static bool is_mount(struct json entry, const struct majors *majors) {
    (void)majors;
    return is_path(json_member(entry, "source")) || is_path(json_member(entry, "destination"));
}

static bool is_program(struct json value) {
    size_t bytes;
    char *text = json_text(value, &bytes);
    if (!text) return false;
    const char *slash = memrchr(text, '/', bytes), *name = slash ? slash + 1 : text;
    const bool is_nvidias = starts(name, bytes - (size_t)(name - text), "nvidia-");
    free(text);
    return is_nvidias;
}

static bool is_hook(struct json entry, const struct majors *majors) {
    (void)majors;
    const struct json words = json_member(entry, "args");
    if (is_program(json_member(entry, "path"))) return true;
    for (struct json_walk walk = json_elements(words); json_next(&walk);)
        if (is_program(walk.value)) return true;
    return false;
}

/* ---- removing them ----------------------------------------------------------------------------------------------- */

/* Removed text is overwritten with zero bytes, which a checked text does not contain; the rest is compacted at the
 * end. */
static void erase(char *text, const char *from, const char *to) {
    memset(text + (from - text), 0, (size_t)(to - from));
}

typedef bool is_card_function(struct json entry, const struct majors *majors);

/* Removes entries from a list, each with one comma. */
static void erase_cards(char *text, struct json list, is_card_function *is_card, const struct majors *majors) {
    const char *kept = NULL, *from = NULL, *to = NULL; /* end of the last kept entry; a run of removed ones */
    for (struct json_walk walk = json_elements(list); json_next(&walk);) {
        const char *start = walk.value.text, *end = start + walk.value.bytes;
        if (is_card(walk.value, majors)) {
            if (!from) from = start;
            to = end;
        } else {
            if (from) erase(text, from, start);
            from = NULL;
            kept = end;
        }
    }
    if (from) erase(text, kept ? kept : from, to);
}

size_t config_remove_cards(struct json config, char *text, size_t bytes, struct majors majors) {
    const struct json system = json_member(config, "linux"), nodes = json_member(system, "devices"),
                      rules = json_member(json_member(system, "resources"), "devices"),
                      mounts = json_member(config, "mounts"), hooks = json_member(config, "hooks");
    for (struct json_walk walk = json_elements(nodes); json_next(&walk);) {
        int64_t number;
        /* A node named like a card, with a number from a dynamic range. */
        if (is_path(json_member(walk.value, "path")) && json_integer(json_member(walk.value, "major"), &number) &&
            is_dynamic(number))
            majors.is_card[number] = true;
    }
    erase_cards(text, nodes, is_node, &majors);
    erase_cards(text, rules, is_rule, &majors);
    erase_cards(text, mounts, is_mount, &majors);
    for (struct json_walk walk = json_members(hooks); json_next(&walk);)
        erase_cards(text, walk.value, is_hook, &majors);
    size_t left = 0;
    for (size_t i = 0; i < bytes; i++)
        if (text[i]) text[left++] = text[i];
    return left;
}
