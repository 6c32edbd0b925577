/* The border to the operating system. Nothing else in this library calls libc but for memory and strings (what
 * link/libc.c has of them): every symbol that is imported must be in glibc 2.17 and in all later ones.
 *
 * Functions that may fail return false or -1 and leave why in errno, those that never do say so. None allocates with
 * malloc; none changes errno when it succeeds.
 */
#pragma once

#include "hook.h"

#include <errno.h>

/* Leaves errno as it was to the end of the block: what a program sees of it is not ours to change. */
#define KEEP_ERRNO __attribute__((cleanup(restore_errno), unused)) const int kept_errno = errno
static inline void restore_errno(const int *kept) { errno = *kept; }

/* ---- Time: nanoseconds of CLOCK_MONOTONIC ------------------------------------------------------------------------ */

enum { OS_MS = 1000 * 1000 };
#define OS_NEVER UINT64_MAX

HIDDEN uint64_t os_now(void);
HIDDEN void os_sleep(uint64_t ns);

/* ---- Locks: one word, zero is free. Held for short and never while the driver is called. ------------------------- */

struct os_lock {
    _Atomic uint32_t word;
};

HIDDEN void os_lock(struct os_lock *lock);
HIDDEN void os_unlock(struct os_lock *lock);

/* Waits while *word is `value`, at most until `deadline`; may return early. */
HIDDEN void os_wait(_Atomic uint32_t *word, uint32_t value, uint64_t deadline);
/* The same for a word that other processes change, in memory that may be read-only. */
HIDDEN void os_wait_shared(const uint32_t *word, uint32_t value, uint64_t deadline);
HIDDEN void os_wake(_Atomic uint32_t *word, unsigned how_many);

/* ---- Threads and processes --------------------------------------------------------------------------------------- */

/* Starts a detached thread with all signals blocked and a stack of 1 MiB, or more. */
HIDDEN bool os_thread(void (*run)(void *argument), void *argument);

/* This thread wakes up when it said it would, and not some time after. */
HIDDEN void os_be_prompt(void);

/* The same number for as long as this process lives; another in a forked child. Asks the kernel. */
HIDDEN int os_pid(void);
HIDDEN int os_tid(void);
/* Whether that thread of this process has not ended. Asks the kernel. */
HIDDEN bool os_thread_lives(int thread);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Zeroed pages that a forked child has a copy of; NULL where there are none. */
HIDDEN void *os_map(size_t bytes);
/* The same, of which the system keeps nothing ready: what is never written costs nothing. */
HIDDEN void *os_map_lazily(size_t bytes);
/* What `descriptor` has, to be read, over `address` if that is not NULL. */
HIDDEN const void *os_map_shared(int descriptor, size_t bytes, void *address);
HIDDEN void os_unmap(void *address, size_t bytes);

/* ---- Sockets: SOCK_SEQPACKET in the file system, close-on-exec --------------------------------------------------- */

/* The program may close descriptors that are not its own, and open others by the same number: before each use the
 * inode is compared. All zeros: none. */
struct os_socket {
    int descriptor;
    uint64_t device, inode;
};

/* Connects by `deadline`. The descriptor is not one of the low numbers that programs expect to get. */
HIDDEN bool os_connect(struct os_socket *socket, const char *path, uint64_t deadline);

/* Whether the descriptor still is this socket. */
HIDDEN bool os_is_ours(const struct os_socket *socket);

/* One whole packet by `deadline` (a deadline of 0: what can be done at once, else EAGAIN). ETIMEDOUT, ECONNRESET at the
 * end, EBADF where the descriptor is no longer ours. */
HIDDEN bool os_send(const struct os_socket *socket, const void *packet, size_t bytes, uint64_t deadline);
/* Also EMSGSIZE for a packet of another size. A descriptor that came with it goes to *descriptor (-1: none), or is
 * closed if `descriptor` is NULL. */
HIDDEN bool os_receive(const struct os_socket *socket, void *packet, size_t bytes, int *descriptor, uint64_t deadline);

/* Closes it if it is still ours, and forgets it. */
HIDDEN void os_disconnect(struct os_socket *socket);
HIDDEN void os_close(int descriptor);

/* ---- Files ------------------------------------------------------------------------------------------------------- */

struct os_file {
    uint64_t device, inode, size;
    bool is_socket, is_device;
};

HIDDEN bool os_look(const char *path, struct os_file *file);
HIDDEN bool os_look_at(int descriptor, struct os_file *file);

enum { OS_NAME = 256 };

/* The name of the only thing that is in a folder; false where there is none, or are several. */
HIDDEN bool os_only_name(const char *folder, char name[OS_NAME]);

/* Up to `most` bytes of a file, mapped; to be given to os_unmap with *bytes. NULL where it cannot be read or is
 * empty. */
HIDDEN void *os_read(const char *path, size_t most, size_t *bytes);

/* ---- What this process is ---------------------------------------------------------------------------------------- */

enum { OS_PATH = 4096 };

/* An environment variable; NULL in a process with privileges that its caller does not have. */
HIDDEN const char *os_environment(const char *name);

/* What containers see of the broker. */
#define OS_PLACE "/run/partage"

/* The path of this object. */
HIDDEN bool os_own_path(char path[OS_PATH]);

/* <X>/`name` where this object lies in <X>/lib. */
HIDDEN bool os_beside(const char *name, char path[OS_PATH]);

/* The broker's socket: beside this object where there is one, else in the folder of the container's claim. Where there
 * is none, or several claims, it is OS_PLACE/broker, where nobody answers. Looked up at each call. */
HIDDEN void os_broker_path(char path[OS_PATH]);

/* Whether a file of that name lies beside the broker's socket. */
HIDDEN bool os_broker_says(const char *name);

/* Runs `child` in every process forked from now on, before fork returns there: in one thread, in whatever state the
 * locks are. It may use nothing but os.h and its own memory. */
HIDDEN void os_at_fork(void (*child)(void));

/* Runs `call` when this process exits, before all that was asked for earlier. Where there is no room for it it is not
 * called. */
HIDDEN void os_at_exit(void (*call)(void *unused));
