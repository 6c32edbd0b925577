/* Waits for descriptors and calls what watches them: one event at a time, so that none hears of what just went. */
#pragma once

#include <stdbool.h>
#include <sys/epoll.h>

struct node;

/* The first member of whatever has a descriptor to watch. */
struct watch {
    int fd;
    void (*ready)(struct node *node, struct watch *watch, unsigned events);
};

/* 0, or -1 and errno. */
int loop_watch(int loop, struct watch *watch);

/* Forgets the watch and closes its descriptor. */
void loop_close(int loop, struct watch *watch);

/* Serves until `*stop`. Who is ready waits in a queue, so one who always is cannot starve the others. */
void loop_run(int loop, struct node *node, const bool *stop);
