/* Two programs that talk to the broker over their container's own socket, as any process in a container can.
 *
 *     broker asks     a new process five times a second, which registers and asks for memory, as the library of any
 *                     program does
 *     broker floods   in turn, forever: many processes, one of which makes as many shareable pieces of memory as it
 *                     may and gives back part of each, so that all living processes may have it; then as many new
 *                     connections as can be made; then a rest, in which others have the machine
 *
 * Each printed line begins with the time by CLOCK_MONOTONIC.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

enum {
    MIB = 1 << 20,
    PAGE = 4096,
    PROCESSES = 30,
    MOST_PIECES = 4096,
    FLOODERS = 2,
    FLOOD_S = 5,
    REST_S = 10,
    PATIENCE_S = 120
};
enum { AWAY = 99 }; /* our own result: no answer */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int ask(int link, struct wire *packet) {
    packet->version = WIRE_VERSION;
    if (link < 0 || send(link, packet, sizeof *packet, MSG_NOSIGNAL) != sizeof *packet) return AWAY;
    if (recv(link, packet, sizeof *packet, 0) != sizeof *packet) return AWAY;
    return packet->result;
}

/* The first message of a process of the library; `link` stays open. */
static int hello(int *link) {
    struct sockaddr_un place = {.sun_family = AF_UNIX, .sun_path = WIRE_PATH};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    struct wire packet = {.what = WIRE_HELLO, .card = WIRE_NO_CARD, .number = 1};
    *link = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    setsockopt(*link, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(*link, (struct sockaddr *)&place, sizeof place)) return AWAY;
    return ask(*link, &packet);
}

static void once(void) {
    int link;
    const double began = now();
    const int known = hello(&link);
    struct wire packet = {.what = WIRE_LEND, .card = 0, .number = 2, .amounts = {.used = MIB, .lent = MIB}};
    const int lent = known == WIRE_OK ? ask(link, &packet) : AWAY;
    printf("%.3f asked %.6f %d %d\n", began, now() - began, known, lent);
    fflush(stdout);
    _exit(0);
}

static void wait_for_broker(void) {
    for (int link; hello(&link) == AWAY; usleep(200000)) close(link);
}

static void asks(void) {
    for (;; usleep(200000)) {
        if (!fork()) once();
        wait(NULL);
    }
}

static int pieces(int what, unsigned long long size, unsigned long long freed, int most, int link) {
    for (int number = 0; number < most; ++number) {
        struct wire packet = {.what = (uint16_t)what, .card = 0, .number = 3, .flags = WIRE_ANYBODY};
        packet.shared.name = what == WIRE_EXPORT ? (uint64_t)number + 1 : 0;
        packet.shared.number = (uint64_t)number + 1;
        packet.shared.size = size;
        packet.shared.freed = freed;
        const int result = ask(link, &packet);
        if (result == AWAY || (what == WIRE_EXPORT && result != WIRE_OK)) return number;
    }
    return most;
}

static void fill(void) {
    int link, made = 0, left = 0;
    if (hello(&link) == WIRE_OK) {
        made = pieces(WIRE_EXPORT, MIB, 0, MOST_PIECES, link);
        left = pieces(WIRE_LEAVE, PAGE, PAGE, made, link);
    }
    printf("%.3f pieces %d %d\n", now(), made, left);
    fflush(stdout);
}

static void come_again(void) {
    int greeted = 0;
    for (const double until = now() + FLOOD_S; now() < until;) {
        int link;
        greeted += hello(&link) == WIRE_OK;
        close(link);
    }
    printf("%.3f greeted %d\n", now(), greeted);
    fflush(stdout);
    _exit(0);
}

static void floods(void) {
    for (;;) {
        pid_t staying[PROCESSES];
        for (int each = 0; each < PROCESSES; ++each) {
            staying[each] = fork();
            if (!staying[each]) {
                int link;
                hello(&link);
                for (;;) pause();
            }
        }
        sleep(2);
        fill();
        for (int each = 0; each < FLOODERS; ++each)
            if (!fork()) come_again();
        for (int each = 0; each < FLOODERS; ++each) wait(NULL);
        for (int each = 0; each < PROCESSES; ++each) kill(staying[each], SIGKILL);
        while (wait(NULL) > 0) {
        }
        sleep(REST_S);
    }
}

int main(int count, char **words) {
    if (count != 2) return 2;
    wait_for_broker();
    if (!strcmp(words[1], "asks")) asks();
    if (!strcmp(words[1], "floods")) floods();
    return 2;
}
