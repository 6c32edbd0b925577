/* Closes the broker's sockets as programs that close all descriptors do, and opens other descriptors in their place.
 *
 *   closing MIB     allocates pieces of MIB until memory is exhausted; again without the sockets, and again with other
 *                   descriptors under their numbers
 *
 * A line of JSON has the number of pieces each time, and the number of bytes written to foreign descriptors.
 */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { DESCRIPTORS = 4096, ENDS = 2 };

static bool is_of_broker(int descriptor) {
    struct sockaddr_un peer = {0};
    socklen_t length = sizeof peer - 1;
    if (getpeername(descriptor, (struct sockaddr *)&peer, &length) || peer.sun_family != AF_UNIX) return false;
    return strstr(peer.sun_path, "broker") != NULL; /* it is bound under another name and renamed */
}

static unsigned close_sockets(void) {
    unsigned closed = 0;
    for (int descriptor = 0; descriptor < DESCRIPTORS; descriptor++)
        if (is_of_broker(descriptor)) closed += close(descriptor) == 0;
    return closed;
}

/* Each is replaced by one end of a socket pair; bytes that arrive at the other end were written into it. */
static unsigned replace_sockets(int *others, unsigned most) {
    unsigned replaced = 0;
    for (int descriptor = 0; descriptor < DESCRIPTORS && replaced < most; descriptor++) {
        int pair[ENDS];
        if (!is_of_broker(descriptor)) continue;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) || dup2(pair[0], descriptor) < 0) stop_with("no socket pair");
        close(pair[0]);
        others[replaced++] = pair[1];
    }
    return replaced;
}

int main(int count, char **words) {
    enum { MOST_REPLACED = 16 };
    int others[MOST_REPLACED], foreign = 0;
    if (count != 2) stop_with("closing: see its first comment");
    const u64 bytes = strtoull(words[1], NULL, 10) * MIB;
    open_card();
    const unsigned first = pieces_of(bytes), closed = close_sockets(), second = pieces_of(bytes);
    const unsigned replaced = replace_sockets(others, MOST_REPLACED), third = pieces_of(bytes);
    for (unsigned i = 0; i < replaced; i++) {
        int unread = 0;
        if (ioctl(others[i], FIONREAD, &unread) == 0) foreign += unread;
    }
    printf("{\"pieces\":[%u,%u,%u],\"closed\":%u,\"replaced\":%u,\"foreign_bytes\":%d}\n", first, second, third, closed,
           replaced, foreign);
    return 0;
}
