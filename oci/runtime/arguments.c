#include "arguments.h"

#include <stddef.h>
#include <string.h>

/* Flags of runc and crun that take a value; others take none. */
static const char *const global_flags[] = {"root",           "log",  "log-format", "log-level", "rootless",
                                           "cgroup-manager", "criu", NULL};
static const char *const create_flags[] = {
    "bundle", "b", "config", "f", "console-socket", "pid-file", "pidfd-socket", "preserve-fds", NULL};
static const char *const no_flags[] = {NULL};

struct flag {
    const char *name;
    size_t length;
    const char *value; /* "" if there is none */
};

static bool is(const struct flag *flag, const char *name) {
    return strlen(name) == flag->length && !memcmp(flag->name, name, flag->length);
}

static bool takes_value(const struct flag *flag, const char *const *names) {
    while (*names && !is(flag, *names)) names++;
    return *names;
}

/* Reads the flag at *at, and advances *at past it. */
static struct flag read_flag(char ***at, const char *const *with_value) {
    const char *word = *(*at)++;
    struct flag flag = {.name = word + (word[1] == '-' ? 2 : 1), .value = ""};
    flag.length = strcspn(flag.name, "=");
    if (flag.name[flag.length])
        flag.value = flag.name + flag.length + 1;
    else if (takes_value(&flag, with_value) && **at)
        flag.value = *(*at)++;
    return flag;
}

static bool is_flag(const char *word) { return word && word[0] == '-' && word[1]; }

bool call_is(const struct call *call, const char *verb) { return call->verb && !strcmp(call->verb, verb); }

struct call arguments_read(char **argv) {
    struct call call = {.root = "", .log = "", .bundle = ""};
    char **at = argv + 1;
    while (is_flag(*at)) {
        const struct flag flag = read_flag(&at, global_flags);
        if (is(&flag, "root")) call.root = flag.value;
        if (is(&flag, "log")) call.log = flag.value;
        if (is(&flag, "log-format")) call.log_is_json = !strcmp(flag.value, "json");
    }
    if (!*at) return call;
    call.verb = *at++;
    const bool creates = call_is(&call, "create") || call_is(&call, "run");
    for (bool are_flags = true; *at;) {
        if (!are_flags || !is_flag(*at)) {
            if (!call.id) call.id = *at;
            at++;
            continue;
        }
        const struct flag flag = read_flag(&at, creates ? create_flags : no_flags);
        if (!flag.length) are_flags = false; /* -- */
        if (is(&flag, "bundle") || is(&flag, "b")) call.bundle = flag.value;
        call.names_config |= creates && (is(&flag, "config") || is(&flag, "f"));
    }
    return call;
}
