#include "create.h"

#include "alloc.h"
#include "config.h"
#include "file.h"
#include "peer.h"
#include "refusal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#ifndef ANSWER_MS
#define ANSWER_MS 60000 /* the agent waits for the broker, and for other requests for the same room */
#endif

enum { MOST_CONFIG = 64 << 20, MOST_DEVICES = 64 << 10 };

/* Makes a path absolute, since the agent has another working directory. */
static const char *absolute(const char *path) {
    if (*path == '/') return path;
    char *here = getcwd(NULL, 0);
    return formatted("%s/%s", here ? here : ".", path);
}

struct bundle {
    const char *folder, *path; /* of config.json */
    char *text;
    size_t bytes;
    struct stat file;
    struct json config;
};

/* NULL, or why config.json cannot be inspected. */
static const char *read_config(const struct call *call, struct bundle *bundle) {
    bundle->folder = absolute(call->bundle);
    bundle->path = formatted("%s/config.json", bundle->folder);
    if (call->names_config) return "`--config` names another file";
    bundle->text = file_read(bundle->path, MOST_CONFIG, &bundle->bytes, &bundle->file);
    if (!bundle->text) return strerror(errno);
    if (!json_check(bundle->text, bundle->bytes, &bundle->config)) return "it is not JSON, or is nested too deep";
    return NULL;
}

/* Without the kernel's list, only NVIDIA's fixed number and numbers found in config.json are known. */
static struct majors kernel_majors(void) {
    struct stat file;
    size_t bytes;
    char *list = file_read("/proc/devices", MOST_DEVICES, &bytes, &file);
    const struct majors majors = majors_of(list ? list : "");
    free(list);
    return majors;
}

static void keep_cards_out(const struct call *call, struct bundle *bundle) {
    const size_t left = config_remove_cards(bundle->config, bundle->text, bundle->bytes, kernel_majors());
    if (left < bundle->bytes && !file_replace(bundle->path, bundle->text, left, &bundle->file))
        refuse(call, "%s can't be written, to take cards out: %s", bundle->path, strerror(errno));
}

static const char *ask_agent(const struct call *call, const struct settings *settings, const char *folder) {
    const struct peer agent = {"agent", settings->socket, settings->agent_wait_ms, ANSWER_MS};
    struct answer answer;
    const char *root = *call->root ? absolute(call->root) : "";
    const char *line =
        formatted("{\"ask\":\"create\",\"id\":%s,\"bundle\":%s,\"root\":%s,\"runtime\":%s}\n", json_quoted(call->id),
                  json_quoted(folder), json_quoted(root), json_quoted(settings->runtime));
    if (!peer_ask(&agent, line, "go", &answer)) refuse(call, "%s", answer.why);
    return *answer.runtime ? answer.runtime : settings->runtime;
}

const char *create(const struct call *call, const struct settings *settings) {
    struct bundle bundle = {0};
    const char *why = read_config(call, &bundle);
    if (why && settings->guard) refuse(call, "%s can't be read, to keep cards out: %s", bundle.path, why);
    if (why) return settings->runtime; /* the runtime reports the error */
    const bool asks = config_asks(bundle.config);
    if (asks && settings->fault) refuse(call, "%s", settings->fault);
    if (asks || settings->guard) keep_cards_out(call, &bundle);
    return asks && call->id ? ask_agent(call, settings, bundle.folder) : settings->runtime;
}
