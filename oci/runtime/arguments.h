/* The command line of an OCI runtime, as runc and crun parse it: global flags, a command, its flags and arguments.
 * Engines write flags as `--flag value` and `--flag=value`; Go programs also accept `-flag`. */
#pragma once

#include <stdbool.h>

struct call {
    const char *verb; /* NULL: none, as in `--version` */
    const char *id;   /* NULL: not given */
    const char *root, *log;
    bool log_is_json;
    const char *bundle;
    bool names_config; /* a config.json other than the bundle's */
};

struct call arguments_read(char **argv);
bool call_is(const struct call *call, const char *verb);
