#include "loop.h"

#include <unistd.h>

int loop_watch(int loop, struct watch *watch) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
    return epoll_ctl(loop, EPOLL_CTL_ADD, watch->fd, &event);
}

void loop_close(int loop, struct watch *watch) {
    if (watch->fd < 0) return;
    epoll_ctl(loop, EPOLL_CTL_DEL, watch->fd,
              NULL); /* other processes may have a copy of the descriptor: closing is not enough */
    close(watch->fd);
    watch->fd = -1;
}

void loop_run(int loop, struct node *node, const bool *stop) {
    while (!*stop) {
        struct epoll_event event;
        if (epoll_wait(loop, &event, 1, -1) != 1) continue;
        struct watch *watch = event.data.ptr;
        watch->ready(node, watch, event.events);
    }
}
