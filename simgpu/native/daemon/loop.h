/* Event loop: waits for descriptors and calls their handlers, one event at a time, so that no handler runs for a watch
 * that was just closed. */
#pragma once

#include <stdbool.h>
#include <sys/epoll.h>

struct node;

/* First member of every structure that has a descriptor to watch. */
struct watch {
    int fd;
    void (*ready)(struct node *node, struct watch *watch, unsigned events);
};

/* 0, or -1 and errno. */
int loop_watch(int loop, struct watch *watch);

/* Removes the watch and closes its descriptor. */
void loop_close(int loop, struct watch *watch);

/* Runs until `*stop`. Ready descriptors are served in turn, so that a busy one cannot starve the others. */
void loop_run(int loop, struct node *node, const bool *stop);
