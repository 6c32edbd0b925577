/* JSON texts of others: checked once as a whole, then walked where they stand. No tree is made, nothing is copied but
 * the texts that are asked for.
 *
 * Of members with the same name the last one counts, as in Go. Bytes above ASCII are not looked at.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH = 64 };

/* One value, from its first byte to its last. All zeros: there is none, and it has no members. */
struct json {
    const char *text;
    size_t bytes;
};

/* Whether the whole text is one value, at most JSON_DEPTH deep. All functions below are for what was checked. */
bool json_check(const char *text, size_t bytes, struct json *value);

/* Goes over the elements of an array or the members of an object; of a value of another kind there are none.
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

/* The member of that name, which is ASCII. */
struct json json_member(struct json object, const char *name);

bool json_is_true(struct json value);
/* False for what is no whole number of 64 bits. */
bool json_integer(struct json value, int64_t *number);

/* What a string says, in UTF-8, with a zero behind it; the caller frees it. NULL for what is no string. */
char *json_text(struct json value, size_t *bytes);

/* The text as a JSON string, with its quotes; the caller frees it. */
char *json_quoted(const char *text);
