#include "clients.h"

#include "calls.h"
#include "sampler.h"
#include "sockets.h"

#include <stdlib.h>
#include <unistd.h>

enum { MOST_OF_A_PROCESS = 64 };

/* The process may outlive its connection, or may have called exec. */
static void leave(struct node *node, struct client *client) {
    struct process *process = client->process;
    client_close(node, client);
    process_check_exec(node, process);
    process_leave(node, process);
}

/* ---- packets ---------------------------------------------------------------------------------------------------- */

static void answer_packet(struct node *node, struct client *client, const struct sim_request *request, size_t bytes,
                          int *fd, struct answer *answer) {
    if (bytes == sizeof *request && (client->greeted || request->ask == SIM_HELLO)) {
        call_answer(node, client->process, request, fd, answer);
        client->greeted |= request->ask == SIM_HELLO && answer->reply.result == SIM_OK;
        return;
    }
    *answer = (struct answer){.reply.result = SIM_MISUSED, .bytes = sizeof answer->reply, .fds = {-1, -1}};
}

/* Reads one packet per event, so that a client that sends many does not starve the others. A client whose unread
 * replies fill its buffer is disconnected. */
static void readable(struct node *node, struct watch *watch, unsigned events) {
    struct client *client = (struct client *)watch;
    struct sim_request request;
    struct answer answer;
    size_t bytes = sizeof request;
    int fd;
    (void)events;
    enum packet packet = socket_receive(watch->fd, &request, &bytes, &fd);
    bool is_asked = packet == PACKET_READ || packet == PACKET_TOO_LONG;
    if (is_asked) answer_packet(node, client, &request, packet == PACKET_READ ? bytes : 0, &fd, &answer);
    if (fd >= 0) close(fd);
    if (packet == PACKET_END || (is_asked && !socket_send(watch->fd, &answer, answer.bytes, answer.fds)))
        leave(node, client);
}

/* ---- accepting -------------------------------------------------------------------------------------------------- */

static bool let_in(struct node *node, int socket) {
    if (node->client_count >= node->most_of_a_kind) return false;
    struct process *process = process_of_peer(node, socket);
    if (!process) return false;
    struct client *client = process->client_count < MOST_OF_A_PROCESS ? malloc(sizeof *client) : NULL;
    if (client) *client = (struct client){.watch = {.fd = socket, .ready = readable}, .process = process};
    if (!client || loop_watch(node->loop, &client->watch)) {
        free(client);
        process_leave(node, process);
        return false;
    }
    LIST_INSERT_HEAD(&process->clients, client, of_process);
    process->client_count++;
    if (node->client_count++ == 0) sampling_restart(node);
    return true;
}

static void knocked(struct node *node, struct watch *watch, unsigned events) {
    (void)events;
    int socket = socket_accept(watch->fd);
    if (socket >= 0 && !let_in(node, socket)) close(socket);
}

int clients_listen(struct node *node, const char *path) {
    static struct watch listener = {.ready = knocked};
    listener.fd = socket_listen(path, 0666);
    return listener.fd < 0 ? -1 : loop_watch(node->loop, &listener);
}
