/* The sockets, and the requests sent over them. */
#include "session.h"

#include <stdatomic.h>
#include <string.h>

enum { FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 100, AWAKE_NS = 100 * 1000 };

/* Written only while holding the turn. The sockets are also read without it, so they are copied under a short-held
 * lock. */
static struct {
    struct os_lock lock; /* of the sockets */
    struct os_socket calls, signals;
    unsigned char token[16];
    bool has_token, was_prompt;
    uint32_t number;
    int pid;
} session;

_Atomic uint32_t session_flags;

static _Atomic bool watches_forks;

/* The container's cards: learned on the first connection, and constant from then on. */
static unsigned char uuids[MOST_CARDS][16];
static _Atomic unsigned cards; /* number of uuids filled in */

/* ---- packets ---------------------------------------------------------------------------------------------------- */

static struct os_socket copy_of(const struct os_socket *socket) {
    os_lock(&session.lock);
    const struct os_socket copy = *socket;
    os_unlock(&session.lock);
    return copy;
}

static void replace(struct os_socket *socket, struct os_socket with) {
    os_lock(&session.lock);
    struct os_socket before = *socket;
    *socket = with;
    os_unlock(&session.lock);
    os_disconnect(&before);
}

struct os_socket session_signals(void) { return copy_of(&session.signals); }

static bool answers(const struct wire *answer, const struct wire *question) {
    return answer->version == WIRE_VERSION && answer->what == (question->what | WIRE_ANSWER) &&
           answer->number == question->number;
}

/* A prompt response arrives faster than a thread sleeps and wakes up, above all on a virtual machine: so it is awaited
 * by spinning, as long as the last one was prompt. */
static bool receive(const struct os_socket *socket, struct wire *answer, int *descriptor, uint64_t deadline) {
    KEEP_ERRNO;
    const uint64_t began = os_now(), awake = session.was_prompt ? AWAKE_NS : 0;
    bool came = false;
    errno = EAGAIN;
    while (!came && errno == EAGAIN && os_now() - began < awake)
        came = os_receive(socket, answer, sizeof *answer, descriptor, 0);
    if (!came && errno == EAGAIN) came = os_receive(socket, answer, sizeof *answer, descriptor, deadline);
    session.was_prompt = os_now() - began < 2 * AWAKE_NS;
    return came;
}

/* The response replaces the request. A descriptor received with it is stored in *descriptor, or closed. */
static bool exchange(const struct os_socket *socket, struct wire *packet, int *descriptor, uint64_t deadline) {
    struct wire answer;
    packet->version = WIRE_VERSION;
    packet->number = ++session.number;
    if (!os_send(socket, packet, sizeof *packet, deadline)) return false;
    if (!receive(socket, &answer, descriptor, deadline)) return false;
    if (!answers(&answer, packet)) return false;
    *packet = answer;
    return true;
}

bool session_ask_once(struct wire *packet, uint64_t deadline) {
    return exchange(&session.calls, packet, NULL, deadline);
}

/* ---- cards ------------------------------------------------------------------------------------------------------ */

static bool learn_one(unsigned card, uint64_t deadline) {
    struct wire packet = {.what = WIRE_CARD, .card = (uint16_t)card};
    if (!session_ask_once(&packet, deadline) || packet.result != WIRE_OK) return false;
    memcpy(uuids[card], packet.card_is.uuid, sizeof uuids[card]);
    return true;
}

/* A number always denotes the same card, so only new ones are requested. */
static bool learn_cards(unsigned count, uint64_t deadline) {
    for (unsigned card = atomic_load(&cards); card < count && card < MOST_CARDS; card++) {
        if (!learn_one(card, deadline)) return false;
        atomic_store(&cards, card + 1);
    }
    return true;
}

unsigned session_cards(void) { return atomic_load(&cards); }

unsigned session_card_of(const unsigned char uuid[16]) {
    for (unsigned card = 0; card < session_cards(); card++)
        if (memcmp(uuids[card], uuid, sizeof uuids[card]) == 0) return card;
    return NO_CARD;
}

/* ---- connecting ------------------------------------------------------------------------------------------------- */

static void disconnect(void) {
    replace(&session.calls, (struct os_socket){0});
    replace(&session.signals, (struct os_socket){0});
}

static bool exchange_hello(const struct os_socket *socket, struct wire *hello, uint64_t deadline) {
    int page = -1;
    const bool answered = exchange(socket, hello, &page, deadline);
    for (const struct part *part = session_parts; part < parts_end(); part++)
        if (answered && page != -1 && part->page) part->page(page);
    if (page != -1) os_close(page);
    return answered;
}

/* A token that the broker does not know will not be accepted later either. */
static bool greet(const struct os_socket *socket, uint32_t flags, uint64_t deadline, unsigned *count) {
    struct wire hello = {.what = WIRE_HELLO, .card = NO_CARD, .flags = flags};
    if (session.has_token) memcpy(hello.hello.token, session.token, sizeof session.token);
    if (!exchange_hello(socket, &hello, deadline)) return false;
    if (hello.result == WIRE_UNKNOWN) session.has_token = false;
    if (hello.result != WIRE_OK) return false;
    memcpy(session.token, hello.hello.token, sizeof session.token);
    session.has_token = true;
    *count = hello.hello.cards;
    return true;
}

static bool connect_one(struct os_socket *to, uint32_t flags, uint64_t deadline, unsigned *count) {
    char path[OS_PATH];
    struct os_socket fresh = {0};
    os_broker_path(path);
    if (!os_connect(&fresh, path, deadline)) return false;
    if (!greet(&fresh, flags, deadline, count)) {
        os_disconnect(&fresh);
        return false;
    }
    replace(to, fresh);
    return true;
}

static void forget_parts(void) {
    for (const struct part *part = session_parts; part < parts_end(); part++)
        if (part->forget) part->forget();
}

/* The sockets are the parent's too: closing them here does not affect the parent's copies. */
static void forget_all(void) {
    memset(&session.lock, 0, sizeof session.lock);
    os_disconnect(&session.calls);
    os_disconnect(&session.signals);
    memset(&session, 0, sizeof session);
    atomic_store(&cards, 0);
    turns_forget();
    forget_parts();
}

static void watch_forks(void) {
    if (!atomic_exchange(&watches_forks, true)) os_at_fork(forget_all);
}

/* Detects a child created without fork handlers (the clone system call), and drops the parent's state. */
static void check_process(void) {
    const int pid = os_pid();
    if (session.pid && session.pid != pid) {
        session.has_token = false;
        forget_parts();
    }
    session.pid = pid;
}

static bool confirm_parts(uint64_t deadline) {
    for (const struct part *part = session_parts; part < parts_end(); part++)
        if (part->confirm && !part->confirm(deadline)) return false;
    return true;
}

static bool connect_both(uint64_t deadline) {
    unsigned count, again;
    disconnect();
    watch_forks();
    check_process();
    return connect_one(&session.calls, WIRE_PROMPT | atomic_load(&session_flags), deadline, &count) &&
           connect_one(&session.signals, WIRE_SIGNALS, deadline, &again) && learn_cards(count, deadline) &&
           confirm_parts(deadline);
}

static bool connected(void) { return session.pid == os_pid() && os_is_ours(&session.calls); }

/* Connects if there is no connection; one attempt. */
static bool renew(uint64_t deadline) {
    if (connected() && os_is_ours(&session.signals)) return true;
    if (connect_both(deadline)) return true;
    disconnect();
    return false;
}

bool session_has(const struct os_socket *signals) {
    const struct os_socket now = copy_of(&session.signals);
    return now.device == signals->device && now.inode == signals->inode;
}

bool session_replace(const struct os_socket *ended, uint64_t deadline) {
    if (session_has(ended)) disconnect();
    return renew(deadline);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static uint64_t sooner(uint64_t one, uint64_t other) { return one < other ? one : other; }
static uint64_t later(uint64_t one, uint64_t other) { return one > other ? one : other; }

/* A late or invalid response ends the connection, so that it is never taken for the response to the next request. */
static bool attempt(struct wire *packet, uint64_t deadline) {
    if (!connected() && !renew(deadline)) return false;
    if (session_ask_once(packet, deadline)) {
        atomic_store(&session_heard, os_now());
        return true;
    }
    disconnect();
    return false;
}

static bool renew_only(struct wire *unused, uint64_t deadline) {
    (void)unused;
    return renew(deadline);
}

/* The last attempt begins after the deadline, so that no request fails because this process was stopped in the middle
 * of an attempt. */
static bool try_until(uint64_t deadline, bool (*once)(struct wire *, uint64_t), struct wire *packet) {
    const struct wire question = *packet;
    uint64_t pause = FIRST_PAUSE_MS * (uint64_t)OS_MS;
    for (;;) {
        const uint64_t began = os_now();
        *packet = question;
        if (once(packet, later(deadline, began + SESSION_GRACE))) return true;
        if (began >= deadline) return false;
        const uint64_t now = os_now();
        if (now < deadline) os_sleep(sooner(pause, deadline - now));
        pause = sooner(2 * pause, LONGEST_PAUSE_MS * (uint64_t)OS_MS);
    }
}

bool session_ask(struct wire *packet, uint64_t deadline) { return try_until(deadline, attempt, packet); }

bool session_tell(struct wire *packet) {
    const struct os_socket calls = copy_of(&session.calls);
    packet->version = WIRE_VERSION;
    return os_send(&calls, packet, sizeof *packet, 0);
}

bool session_say(struct wire *packet) {
    KEEP_ERRNO;
    const struct os_socket signals = copy_of(&session.signals);
    packet->version = WIRE_VERSION;
    return os_send(&signals, packet, sizeof *packet, 0);
}

bool session_start(void) {
    KEEP_ERRNO;
    struct wire nothing = {0};
    const uint64_t deadline = os_now() + SESSION_WAIT;
    if (!session_enter(deadline)) return false;
    const bool ready = try_until(deadline, renew_only, &nothing);
    session_leave();
    return ready;
}
