/* Interface to the operating system. Nothing else in this library calls libc except for memory and string functions
 * (those in link/libc.c): every imported symbol must exist in glibc 2.17 and all later versions.
 *
 * Functions that can fail return false or -1 and set errno; those that never fail are marked. None calls malloc; none
 * changes errno on success.
 */
#pragma once

#include "hook.h"

#include <errno.h>

/* Restores errno at the end of the block: the program must not see it change. */
#define KEEP_ERRNO __attribute__((cleanup(restore_errno), unused)) const int kept_errno = errno
static inline void restore_errno(const int *kept) { errno = *kept; }

/* ---- Time: nanoseconds of CLOCK_MONOTONIC ------------------------------------------------------------------------ */

enum { OS_MS = 1000 * 1000 };
#define OS_NEVER UINT64_MAX

HIDDEN uint64_t os_now(void);
HIDDEN void os_sleep(uint64_t ns);

/* ---- Locks: one word, zero is free. Held briefly, and never while the driver is called. -------------------------- */

struct os_lock {
    _Atomic uint32_t word;
};

HIDDEN void os_lock(struct os_lock *lock);
HIDDEN void os_unlock(struct os_lock *lock);

/* Waits while *word equals `value`, at most until `deadline`; may return early. */
HIDDEN void os_wait(_Atomic uint32_t *word, uint32_t value, uint64_t deadline);
/* The same for a word that other processes change, in memory that may be read-only. */
HIDDEN void os_wait_shared(const uint32_t *word, uint32_t value, uint64_t deadline);
HIDDEN void os_wake(_Atomic uint32_t *word, unsigned how_many);

/* ---- Threads and processes --------------------------------------------------------------------------------------- */

/* Starts a detached thread with all signals blocked and a stack of at least 1 MiB. */
HIDDEN bool os_thread(void (*run)(void *argument), void *argument);

/* Makes this thread's sleeps and timeouts end on time, by setting its timer slack to the minimum. */
HIDDEN void os_be_prompt(void);

/* A process ID that is constant for the life of this process and differs in a forked child. Asks the kernel. */
HIDDEN int os_pid(void);
HIDDEN int os_tid(void);
/* Whether that thread of this process is still alive. Asks the kernel. */
HIDDEN bool os_thread_lives(int thread);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Zeroed private pages, which a forked child gets a copy of; NULL on failure. */
HIDDEN void *os_map(size_t bytes);
/* The same without reserving swap space: pages that are never written cost nothing. */
HIDDEN void *os_map_lazily(size_t bytes);
/* Maps the contents of `descriptor` read-only, over `address` if that is not NULL. */
HIDDEN const void *os_map_shared(int descriptor, size_t bytes, void *address);
HIDDEN void os_unmap(void *address, size_t bytes);

/* ---- Sockets: SOCK_SEQPACKET in the file system, close-on-exec --------------------------------------------------- */

/* The program may close descriptors that it does not own and reuse their numbers, so the inode is compared before each
 * use. All zeros means no socket. */
struct os_socket {
    int descriptor;
    uint64_t device, inode;
};

/* Connects by `deadline`. The descriptor is moved above the low numbers that programs expect to get. */
HIDDEN bool os_connect(struct os_socket *socket, const char *path, uint64_t deadline);

/* Whether the descriptor still refers to this socket. */
HIDDEN bool os_is_ours(const struct os_socket *socket);

/* Sends one whole packet by `deadline` (0: do not wait; EAGAIN if that would block). ETIMEDOUT; ECONNRESET at end of
 * file; EBADF if the descriptor is no longer ours. */
HIDDEN bool os_send(const struct os_socket *socket, const void *packet, size_t bytes, uint64_t deadline);
/* As os_send, and EMSGSIZE for a packet of another size. A descriptor received with the packet is stored in *descriptor
 * (-1: none), or closed if `descriptor` is NULL. */
HIDDEN bool os_receive(const struct os_socket *socket, void *packet, size_t bytes, int *descriptor, uint64_t deadline);

/* Closes the socket if it is still ours, and clears the structure. */
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

/* The name of the only entry of a folder; false if the folder is missing, empty or has several entries. */
HIDDEN bool os_only_name(const char *folder, char name[OS_NAME]);

/* Maps up to `most` bytes of a file; to be unmapped with os_unmap and *bytes. NULL if the file is unreadable or
 * empty. */
HIDDEN void *os_read(const char *path, size_t most, size_t *bytes);

/* ---- Process identity -------------------------------------------------------------------------------------------- */

enum { OS_PATH = 4096 };

/* The value of an environment variable; NULL in a process with privileges that its caller does not have. */
HIDDEN const char *os_environment(const char *name);

/* Directory of the broker's files inside containers. */
#define OS_PLACE "/run/partage"

/* The path of this shared object. */
HIDDEN bool os_own_path(char path[OS_PATH]);

/* <X>/`name`, if this shared object is in <X>/lib. */
HIDDEN bool os_beside(const char *name, char path[OS_PATH]);

/* The broker's socket: the one beside this object if it exists, otherwise the one in the folder of the container's
 * claim. With no claim or several it is OS_PLACE/broker, where nothing listens. Looked up at each call. */
HIDDEN void os_broker_path(char path[OS_PATH]);

/* Whether a file of that name exists beside the broker's socket. */
HIDDEN bool os_broker_says(const char *name);

/* Registers `child` to run in every process forked from now on, before fork returns there. It runs in a single thread
 * with locks in an unknown state, and may use only os.h and its own memory. */
HIDDEN void os_at_fork(void (*child)(void));

/* Registers `call` to run when this process exits, before all handlers registered earlier. If registration fails for
 * lack of memory, it does not run. */
HIDDEN void os_at_exit(void (*call)(void *unused));
