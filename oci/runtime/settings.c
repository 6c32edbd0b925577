#include "settings.h"

#include "alloc.h"
#include "file.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_BYTES = 64 << 10, MOST_MS = 10 * 60 * 1000 };

static const char *const runtimes[] = {
    "/usr/bin/runc", "/usr/sbin/runc", "/usr/local/bin/runc", "/usr/local/sbin/runc",
    "/usr/bin/crun", "/usr/sbin/crun", "/usr/local/bin/crun", "/usr/local/sbin/crun",
};

/* ---- values: a setter returns NULL, or what it would accept ----------------------------------------------------- */

static const char *read_path(const char *value, const char **setting) {
    if (*value != '/') return "an absolute path";
    *setting = value;
    return NULL;
}

static const char *read_address(const char *value, const char **setting) {
    if (strlen(value) >= sizeof((struct sockaddr_un *)0)->sun_path) return "a path of at most 107 bytes";
    return read_path(value, setting);
}

static const char *set_socket(struct settings *settings, const char *value) {
    return read_address(value, &settings->socket);
}

static const char *set_broker(struct settings *settings, const char *value) {
    return read_address(value, &settings->broker);
}

static const char *set_runtime(struct settings *settings, const char *value) {
    return read_path(value, &settings->runtime);
}

static const char *set_guard(struct settings *settings, const char *value) {
    settings->guard = strcmp(value, "no") != 0;
    return settings->guard && strcmp(value, "yes") ? "yes or no" : NULL;
}

static const char *set_agent_wait(struct settings *settings, const char *value) {
    char *end;
    errno = 0;
    const unsigned long ms = isdigit((unsigned char)*value) ? strtoul(value, &end, 10) : ULONG_MAX;
    if (ms > MOST_MS || errno || *end) return "a whole number of milliseconds, at most 600000";
    settings->agent_wait_ms = (unsigned)ms;
    return NULL;
}

static const struct {
    const char *name;
    const char *(*set)(struct settings *settings, const char *value); /* returns what it accepts if not this value */
} known[] = {
    {"agent_wait_ms", set_agent_wait}, {"broker", set_broker}, {"guard", set_guard},
    {"runtime", set_runtime},          {"socket", set_socket},
};

/* ---- the file --------------------------------------------------------------------------------------------------- */

/* Returns the mistake in a line, or NULL. */
static char *read_line(struct settings *settings, char *line) {
    static const char space[] = " \t\r";
    char *name = line + strspn(line, space);
    size_t bytes = strlen(name);
    while (bytes && strchr(space, name[bytes - 1])) name[--bytes] = '\0';
    if (!*name || *name == '#') return NULL;
    char *value = name + strcspn(name, space);
    if (*value) {
        *value++ = '\0';
        value += strspn(value, space);
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name)) continue;
        const char *wanted = known[i].set(settings, value);
        return wanted ? formatted("`%s` is %s, not `%s`", name, wanted, value) : NULL;
    }
    return formatted("there is no setting `%s`, but agent_wait_ms, broker, guard, runtime and socket", name);
}

static void read_lines(struct settings *settings, const char *path, char *text) {
    unsigned number = 0;
    for (char *line; (line = strsep(&text, "\n"));) {
        number++;
        char *fault = read_line(settings, line);
        if (fault && !settings->fault) settings->fault = formatted("%s, line %u: %s", path, number, fault);
    }
}

static void read_file(struct settings *settings, const char *path) {
    struct stat found;
    size_t bytes;
    char *text = file_read(path, MOST_BYTES, &bytes, &found);
    if (text && !memchr(text, '\0', bytes)) {
        read_lines(settings, path, text);
    } else if (text || errno != ENOENT) {
        settings->guard = true;
        settings->fault = formatted("%s can't be read: %s", path, text ? "there is a zero in it" : strerror(errno));
    }
}

static const char *find_runtime(void) {
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
        if (access(runtimes[i], X_OK) == 0) return runtimes[i];
    return NULL;
}

struct settings settings_read(void) {
    struct settings settings = {
        .socket = "/run/partage/oci.sock", .broker = "/run/partage/broker.sock", .agent_wait_ms = 10000};
    char own[PATH_MAX];
    const ssize_t bytes = readlink("/proc/self/exe", own, sizeof own - 1);
    if (bytes > 0) {
        own[bytes] = '\0';
        *strrchr(own, '/') = '\0';
        read_file(&settings, formatted("%s/partage-oci.conf", own));
    } else {
        settings.guard = true;
        settings.fault = formatted("/proc/self/exe can't be read: %s", strerror(errno));
    }
    if (!settings.runtime) settings.runtime = find_runtime();
    return settings;
}
