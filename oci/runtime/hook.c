#include "hook.h"

#include "alloc.h"
#include "file.h"
#include "json.h"
#include "peer.h"
#include "refusal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#ifndef BROKER_MS
#define BROKER_MS 5000
#define BROKER_ABSENT_MS 3000
#endif

enum { MOST_STATE = 1 << 20 };

#define STAYS "the container does not start: "

int hook(const char *key, const struct settings *settings) {
    struct json state;
    size_t bytes, length;
    int64_t pid;
    char *text = file_read_all(STDIN_FILENO, MOST_STATE, &bytes);
    if (!key) refuse(NULL, STAYS "`hook` needs the key of a claim behind it");
    if (settings->fault) refuse(NULL, STAYS "%s", settings->fault);
    if (!text) refuse(NULL, STAYS "its state on stdin can't be read: %s", strerror(errno));
    char *id = json_check(text, bytes, &state) ? json_text(json_member(state, "id"), &length) : NULL;
    if (!id || !json_integer(json_member(state, "pid"), &pid))
        refuse(NULL, STAYS "what is on stdin is no state of a container, with `id` and `pid`");
    const struct peer broker = {"broker", settings->broker, BROKER_ABSENT_MS, BROKER_MS};
    struct answer answer;
    const char *line = formatted("{\"ask\":\"enter\",\"key\":%s,\"container\":%s,\"pid\":%" PRId64 "}\n",
                                 json_quoted(key), json_quoted(id), pid);
    if (!peer_ask(&broker, line, "entered", &answer)) refuse(NULL, STAYS "%s", answer.why);
    return EXIT_SUCCESS;
}
