/* The command line of an OCI runtime, as runc and crun take it: global flags, a verb, its flags and words. Engines
 * write flags as `--flag value` and `--flag=value`; Go's programs take `-flag` as well. */
#pragma once

#include <stdbool.h>

struct call {
    const char *verb; /* NULL: there is none, as in `--version` */
    const char *id;   /* NULL: none was given */
    const char *root, *log;
    bool log_is_json;
    const char *bundle;
    bool names_config; /* a config.json that is not the bundle's */
};

struct call arguments_read(char **argv);
bool call_is(const struct call *call, const char *verb);
