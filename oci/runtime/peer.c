#include "peer.h"

#include "alloc.h"
#include "json.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BYTES = 64 << 10, AGAIN_MS = 20 };

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns -1 and sets errno on failure. Never blocks: a peer on the same machine accepts at once or has no room. */
static int connected(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor == -1) return -1;
    memcpy(address.sun_path, path, strlen(path)); /* the settings check its length */
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0) return descriptor;
    const int why = errno;
    close(descriptor);
    errno = why;
    return -1;
}

/* Waits until the descriptor is ready; false, with ETIMEDOUT, after the deadline. */
static bool ready(int descriptor, short events, int64_t deadline) {
    struct pollfd wanted = {.fd = descriptor, .events = events};
    for (;;) {
        const int64_t left = deadline - now_ms();
        const int found = left > 0 ? poll(&wanted, 1, (int)left) : 0;
        if (found > 0) return true;
        if (found == -1 && errno == EINTR) continue;
        if (found == 0) errno = ETIMEDOUT;
        return false;
    }
}

static bool sent(int descriptor, const char *line, int64_t deadline) {
    for (size_t left = strlen(line); left;) {
        const ssize_t done = send(descriptor, line, left, MSG_NOSIGNAL);
        if (done > 0) line += done, left -= (size_t)done;
        if (done == -1 && errno != EINTR && !(errno == EAGAIN && ready(descriptor, POLLOUT, deadline))) return false;
    }
    return true;
}

/* Reads one line, without its newline; NULL, with ECONNRESET if the peer disconnected first. */
static char *received(int descriptor, int64_t deadline) {
    char *line = allocate(MOST_BYTES);
    for (size_t bytes = 0; bytes < MOST_BYTES;) {
        const ssize_t got =
            ready(descriptor, POLLIN, deadline) ? recv(descriptor, line + bytes, MOST_BYTES - bytes, 0) : -1;
        if (got == -1 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got == 0) errno = ECONNRESET;
        if (got <= 0) return NULL;
        char *end = memchr(line + bytes, '\n', (size_t)got);
        if (end) *end = '\0';
        if (end) return line;
        bytes += (size_t)got;
    }
    errno = EMSGSIZE;
    return NULL;
}

/* Returns NULL and sets errno on failure. */
static char *asked_once(const struct peer *peer, const char *line) {
    const int descriptor = connected(peer->path);
    if (descriptor == -1) return NULL;
    const int64_t deadline = now_ms() + peer->answer_ms;
    char *answer = sent(descriptor, line, deadline) ? received(descriptor, deadline) : NULL;
    const int why = errno;
    close(descriptor);
    errno = why;
    return answer;
}

/* Whether the error may be temporary: the peer is starting, restarting, or busy with earlier clients. */
static bool is_away(int error) {
    return error == ENOENT || error == ECONNREFUSED || error == ECONNRESET || error == EPIPE || error == EAGAIN;
}

static char *asked(const struct peer *peer, const char *line) {
    static const struct timespec again = {.tv_nsec = AGAIN_MS * 1000000L};
    const int64_t deadline = now_ms() + peer->absent_ms;
    for (;;) {
        char *answer = asked_once(peer, line);
        if (answer || !is_away(errno) || now_ms() >= deadline) return answer;
        nanosleep(&again, NULL);
    }
}

static const char *no_answer(const struct peer *peer, int error) {
    if (error == ETIMEDOUT)
        return formatted("the %s at %s did not answer within %g s; see its log", peer->name, peer->path,
                         peer->answer_ms / 1000.0);
    return formatted("no %s answers at %s: %s; %s", peer->name, peer->path, strerror(error),
                     error == EACCES ? "it answers root alone" : "is it running?");
}

static const char *nonsense(const struct peer *peer) {
    return formatted("what the %s at %s answered is no answer; are both of one version?", peer->name, peer->path);
}

static char *member(struct json object, const char *name) {
    size_t bytes;
    return json_text(json_member(object, name), &bytes);
}

bool peer_ask(const struct peer *peer, const char *line, const char *expected, struct answer *answer) {
    struct json object = {0}; /* has no members */
    char *text = asked(peer, line);
    if (!text && errno != EMSGSIZE) {
        answer->why = no_answer(peer, errno);
        return false;
    }
    if (text && !json_check(text, strlen(text), &object)) object = (struct json){0};
    const char *kind = member(object, "answer"), *runtime = member(object, "runtime"), *why = member(object, "why");
    answer->runtime = runtime ? runtime : "";
    answer->why = kind && !strcmp(kind, "no") && why ? why : nonsense(peer);
    return kind && !strcmp(kind, expected);
}

void peer_tell(const char *path, const char *line) {
    const int descriptor = connected(path);
    if (descriptor == -1) return;
    send(descriptor, line, strlen(line), MSG_NOSIGNAL);
    close(descriptor);
}
