/* JSON from other programs: checked once as a whole, then walked in place. No tree is built, and nothing is copied
 * except requested strings.
 *
 * Of members with the same name the last one counts, as in Go. Bytes above ASCII are not checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH = 64 };

/* One value, from its first byte to its last. All zeros: no value, without members. */
struct json {
    const char *text;
    size_t bytes;
};

/* Whether the whole text is one value, at most JSON_DEPTH deep. All functions below require a checked text. */
bool json_check(const char *text, size_t bytes, struct json *value);

/* Iterates over the elements of an array or the members of an object; a value of another kind has none.
 *
 *     for (struct json_walk walk = json_elements(list); json_next(&walk);) use(walk.value);
 */
struct json_walk {
    const char *at, *end;
    bool has_keys;
    struct json key, value;
};
struct json_walk json_elements(struct json value);
struct json_walk json_members(struct json value);
bool json_next(struct json_walk *walk);

/* The member of that name, which must be ASCII. */
struct json json_member(struct json object, const char *name);

bool json_is_true(struct json value);
/* False if the value is not a 64-bit integer. */
bool json_integer(struct json value, int64_t *number);

/* The string's text in UTF-8, with a terminating zero; the caller frees it. NULL if the value is not a string. */
char *json_text(struct json value, size_t *bytes);

/* The text as a JSON string, with quotes; the caller frees it. */
char *json_quoted(const char *text);
