#include "json.h"

#include "alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- checking --------------------------------------------------------------------------------------------------- */

struct reader {
    const char *at, *end;
    unsigned depth;
    char open[JSON_DEPTH]; /* stack of open brackets */
};

/* The next byte after white space; 0 at the end (a zero byte in the text is invalid too). */
static char next(struct reader *reader) {
    while (reader->at < reader->end && memchr(" \t\r\n", *reader->at, 4)) reader->at++;
    return reader->at < reader->end ? *reader->at : '\0';
}

static bool take(struct reader *reader, char wanted) {
    if (next(reader) != wanted) return false;
    reader->at++;
    return true;
}

static int hex(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    digit |= 'a' ^ 'A';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool check_escape(struct reader *reader) {
    if (reader->at == reader->end) return false;
    const char kind = *reader->at++;
    if (kind != 'u') return kind && strchr("\"\\/bfnrt", kind);
    for (int i = 0; i < 4; i++)
        if (reader->at == reader->end || hex(*reader->at++) < 0) return false;
    return true;
}

static bool check_string(struct reader *reader) {
    if (!take(reader, '"')) return false;
    while (reader->at < reader->end) {
        const char byte = *reader->at++;
        if (byte == '"') return true;
        if ((unsigned char)byte < ' ' || (byte == '\\' && !check_escape(reader))) return false;
    }
    return false;
}

static bool digits(struct reader *reader) {
    const char *first = reader->at;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9') reader->at++;
    return reader->at > first;
}

static bool is_at(const struct reader *reader, const char *any) {
    return reader->at < reader->end && *reader->at && strchr(any, *reader->at);
}

static bool check_number(struct reader *reader) {
    if (is_at(reader, "-")) reader->at++;
    if (is_at(reader, "0"))
        reader->at++;
    else if (!digits(reader))
        return false;
    if (is_at(reader, ".")) {
        reader->at++;
        if (!digits(reader)) return false;
    }
    if (is_at(reader, "eE")) {
        reader->at++;
        if (is_at(reader, "+-")) reader->at++;
        if (!digits(reader)) return false;
    }
    return true;
}

static bool check_word(struct reader *reader) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t bytes = strlen(words[i]);
        if ((size_t)(reader->end - reader->at) < bytes || memcmp(reader->at, words[i], bytes) != 0) continue;
        reader->at += bytes;
        return true;
    }
    return false;
}

/* A string, number or word. */
static bool check_scalar(struct reader *reader) {
    const char first = next(reader);
    if (first == '"') return check_string(reader);
    return first == '-' || (first >= '0' && first <= '9') ? check_number(reader) : check_word(reader);
}

static bool check_key(struct reader *reader) { return check_string(reader) && take(reader, ':'); }

/* Enters an array or object. *is_over: it is empty and was left again. */
static bool enter(struct reader *reader, char bracket, bool *is_over) {
    if (reader->depth == JSON_DEPTH) return false;
    reader->at++;
    *is_over = take(reader, bracket == '{' ? '}' : ']');
    if (*is_over) return true;
    reader->open[reader->depth++] = bracket;
    return bracket == '[' || check_key(reader);
}

/* After a value: leaves containers that end here, and moves to the next value. False at the end of the text and on
 * errors; only at the end no container is open. */
static bool another(struct reader *reader) {
    while (reader->depth) {
        const char bracket = reader->open[reader->depth - 1];
        if (take(reader, ',')) return bracket == '[' || check_key(reader);
        if (!take(reader, bracket == '{' ? '}' : ']')) return false;
        reader->depth--;
    }
    return false;
}

bool json_check(const char *text, size_t bytes, struct json *value) {
    struct reader reader = {.at = text, .end = text + bytes};
    next(&reader);
    const char *start = reader.at;
    for (;;) { /* expects a value */
        const char first = next(&reader);
        bool is_over = true;
        if (first != '{' && first != '[') {
            if (!check_scalar(&reader)) return false;
        } else if (!enter(&reader, first, &is_over)) {
            return false;
        }
        if (is_over && !another(&reader)) break;
    }
    *value = (struct json){start, (size_t)(reader.at - start)};
    return !reader.depth && !next(&reader) && reader.at == reader.end;
}

/* ---- walking: the text was checked, so tokens are complete ------------------------------------------------------- */

static const char *after_string(const char *at) {
    for (at++; *at != '"'; at++) at += *at == '\\';
    return at + 1;
}

/* A number or word ends before a byte that cannot be part of it. */
static const char *after_scalar(const char *at, const char *end) {
    while (at < end && !memchr(" \t\r\n,]}", *at, 7)) at++;
    return at;
}

static const char *after_value(const char *at, const char *end) {
    unsigned depth = 0;
    do {
        if (*at == '"') {
            at = after_string(at);
        } else if (depth || *at == '{' || *at == '[') {
            depth += *at == '{' || *at == '[';
            depth -= *at == '}' || *at == ']';
            at++;
        } else {
            at = after_scalar(at, end);
        }
    } while (depth);
    return at;
}

/* Skips white space and separators. */
static void skip(struct json_walk *walk) {
    while (walk->at < walk->end && memchr(" \t\r\n,:", *walk->at, 6)) walk->at++;
}

static struct json step(struct json_walk *walk) {
    skip(walk);
    const char *start = walk->at;
    walk->at = after_value(start, walk->end);
    return (struct json){start, (size_t)(walk->at - start)};
}

static bool begins(struct json value, char with) { return value.bytes && *value.text == with; }

static struct json_walk inside(struct json value, char bracket) {
    if (!begins(value, bracket)) return (struct json_walk){0};
    return (struct json_walk){value.text + 1, value.text + value.bytes - 1, .has_keys = bracket == '{'};
}

struct json_walk json_elements(struct json value) { return inside(value, '['); }
struct json_walk json_members(struct json value) { return inside(value, '{'); }

bool json_next(struct json_walk *walk) {
    skip(walk);
    if (walk->at == walk->end) return false;
    if (walk->has_keys) walk->key = step(walk);
    walk->value = step(walk);
    return true;
}

struct json json_member(struct json object, const char *name) {
    struct json found = {0};
    for (struct json_walk walk = json_members(object); json_next(&walk);) {
        size_t bytes;
        char *key = json_text(walk.key, &bytes);
        if (bytes == strlen(name) && !memcmp(key, name, bytes)) found = walk.value;
        free(key);
    }
    return found;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

bool json_is_true(struct json value) { return begins(value, 't'); }

bool json_integer(struct json value, int64_t *number) {
    enum { MOST = 20 }; /* length of the lowest number */
    char text[MOST + 1] = "", *end;
    if (!value.bytes || value.bytes > MOST) return false;
    memcpy(text, value.text, value.bytes);
    errno = 0;
    *number = strtoll(text, &end, 10);
    return !*end && !errno;
}

/* The code unit of an escape, whose `u` is at *at; advances *at past it. */
static unsigned unit(const char **at) {
    unsigned value = 0;
    for (int i = 1; i <= 4; i++) value = value << 4 | (unsigned)hex((*at)[i]);
    *at += 5;
    return value;
}

/* The code point of an escape; an unpaired surrogate becomes U+FFFD, as in Go. */
static unsigned code_point(const char **at) {
    enum { HIGH = 0xd800, LOW = 0xdc00, END = 0xe000, BEYOND = 0x10000, REPLACEMENT = 0xfffd };
    const unsigned first = unit(at);
    if (first < HIGH || first >= END) return first;
    if (first < LOW && (*at)[0] == '\\' && (*at)[1] == 'u') {
        const char *second = *at + 1;
        const unsigned low = unit(&second);
        if (low >= LOW && low < END) {
            *at = second;
            return BEYOND + ((first - HIGH) << 10) + (low - LOW);
        }
    }
    return REPLACEMENT;
}

static char *write_utf8(char *into, unsigned point) {
    static const unsigned least[] = {0x80, 0x800, 0x10000}, mark[] = {0, 0xc0, 0xe0, 0xf0};
    int more = 0;
    while (more < 3 && point >= least[more]) more++;
    *into++ = (char)(mark[more] | point >> 6 * more);
    while (more--) *into++ = (char)(0x80 | (point >> 6 * more & 0x3f));
    return into;
}

/* Decodes an escape, whose kind is at *at; advances *at past it. */
static char *write_escaped(char *into, const char **at) {
    static const char kinds[] = "bfnrt", bytes[] = "\b\f\n\r\t";
    if (**at == 'u') return write_utf8(into, code_point(at));
    const char *kind = strchr(kinds, **at);
    *into = kind ? bytes[kind - kinds] : **at;
    (*at)++;
    return into + 1;
}

char *json_text(struct json value, size_t *bytes) {
    *bytes = 0;
    if (!begins(value, '"')) return NULL;
    char *text = allocate(value.bytes), *into = text;
    for (const char *at = value.text + 1, *end = value.text + value.bytes - 1; at < end;) {
        if (*at != '\\') {
            *into++ = *at++;
        } else {
            at++;
            into = write_escaped(into, &at);
        }
    }
    *into = '\0';
    *bytes = (size_t)(into - text);
    return text;
}

char *json_quoted(const char *text) {
    enum { LONGEST = sizeof "\\u0000" - 1 };
    char *quoted = allocate(strlen(text) * LONGEST + sizeof "\"\""), *into = quoted;
    *into++ = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') *into++ = '\\';
        if ((unsigned char)*text < ' ')
            into += sprintf(into, "\\u%04x", *text);
        else
            *into++ = *text;
    }
    *into++ = '"';
    *into = '\0';
    return quoted;
}
