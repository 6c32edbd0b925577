/* Packet sockets. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum packet { PACKET_NONE, PACKET_READ, PACKET_TOO_LONG, PACKET_END };

/* Listens at `path` with these permissions, replacing any existing file. A descriptor, or -1 and errno. */
int socket_listen(const char *path, mode_t rights);

/* Accepts a pending connection: a descriptor, or -1. */
int socket_accept(int listener);

/* Receives a pending packet. `*bytes` is the room at `at`, then the length read. `*fd` is the descriptor received with
 * it, or -1; any further ones are closed. */
enum packet socket_receive(int socket, void *at, size_t *bytes, int *fd);

/* Sends a packet with those of the two descriptors that are not -1. False: the peer is gone, or does not read. */
bool socket_send(int socket, const void *at, size_t bytes, const int fds[2]);
