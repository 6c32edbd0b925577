#include "calls.h"

#include "accounts.h"
#include "checkpoints.h"
#include "contexts.h"
#include "managed.h"
#include "namespaces.h"

struct call {
    struct node *node;
    struct process *process;
    const struct sim_request *request;
    int *fd;
    struct answer *answer;
    struct sim_reply *reply;
};

static enum sim_result hello(const struct call *call) {
    if (call->request->id != SIM_PROTOCOL) return SIM_MISUSED;
    process_check_exec(call->node, call->process);
    call->answer->fds[0] = call->node->file_fd;
    call->answer->fds[1] = call->node->lines_fd;
    return SIM_OK;
}

static enum sim_result attach(const struct call *call) {
    enum sim_result result = context_attach(call->node, call->request->card, call->process);
    if (result != SIM_OK) return result;
    call->reply->row = (u32)call->process->account[call->request->card].row;
    call->reply->id = call->process->account[call->request->card].context;
    return SIM_OK;
}

static enum sim_result detach(const struct call *call) {
    return context_detach(call->node, call->request->card, call->process);
}

static enum sim_result take(const struct call *call) {
    u32 card = call->request->card;
    if (!call->request->bytes || call->request->kind > SIM_EXECUTABLE || call->request->kind == SIM_CONTEXT)
        return SIM_MISUSED;
    if (atomic_load(&call->node->file->card[card].live.health) == SIM_LOST) return SIM_CARD_LOST;
    if (call->node->to_fail[card]) {
        call->node->to_fail[card]--;
        return SIM_MADE_TO_FAIL;
    }
    return piece_take(call->node, call->process, card, call->request->kind, call->request->bytes, &call->reply->id);
}

static enum sim_result give(const struct call *call) {
    return piece_give(call->node, call->process, call->request->id);
}

static enum sim_result hold(const struct call *call) {
    return piece_hold(call->node, call->process, call->request->id);
}

static enum sim_result share(const struct call *call) {
    return piece_share(call->node, call->process, call->request->id, call->fd, &call->reply->token);
}

static enum sim_result open_token(const struct call *call) {
    struct opened opened;
    enum sim_result result = piece_open(call->node, call->process, &call->request->token, &opened);
    if (result != SIM_OK) return result;
    call->reply->id = opened.id;
    call->reply->bytes = opened.bytes;
    call->reply->count = opened.card;
    call->reply->pid = pid_as_seen_by(call->process->pid, opened.owner_pid);
    call->answer->fds[0] = opened.kept;
    return SIM_OK;
}

static enum sim_result processes(const struct call *call) {
    u32 card = call->request->card, count = 0;
    node_advance(call->node, card);
    for (u64 row = call->request->id; row < SIM_ROWS && count < SIM_PROCESSES_AT_ONCE / 2; row++) {
        const struct process *process = call->node->in_row[card][row];
        if (!process || process->state == SIM_IS_AWAY) continue;
        call->answer->processes.process[count++] = (struct sim_process){
            .pid = pid_as_seen_by(call->process->pid, process->pid),
            .row = (u32)row,
            .bytes = process->account[card].bytes - process->account[card].managed,
            .busy_ns = account_busy(call->node, card, (u32)row),
        };
    }
    call->reply->count = count;
    call->answer->bytes = offsetof(struct sim_processes, process) + count * sizeof(struct sim_process);
    return SIM_OK;
}

static enum sim_result used(const struct call *call) {
    call->reply->bytes = call->process->account[call->request->card].bytes;
    return SIM_OK;
}

static enum sim_result limit(const struct call *call) {
    return limit_set(call->node, call->request->card, *call->fd, call->request->bytes);
}

static enum sim_result checkpoint(const struct call *call) {
    struct process *process = checkpoint_process(call->node, call->process, call->request->id);
    if (!process) return SIM_UNKNOWN;
    enum sim_result result = checkpoint_step(call->node, process, call->request->kind);
    call->reply->count = process->state == SIM_LOCKING ? SIM_IS_RUNNING : process->state;
    call->reply->bytes = pieces_bytes(call->node, process);
    call->reply->row = checkpoint_card(call->node, process);
    return result;
}

static enum sim_result page(const struct call *call) {
    const struct paged paged = managed_use(call->node, call->process, call->request->card);
    call->reply->bytes = paged.came;
    call->reply->id = paged.left;
    return SIM_OK;
}

static const struct {
    enum sim_result (*answer)(const struct call *call);
    bool of_card;  /* `card` must exist */
    bool of_piece; /* `id` must not be a context's */
    bool waits;    /* while the process is locked */
} ANSWERS[] = {
    [SIM_HELLO] = {hello},
    [SIM_ATTACH] = {attach, .of_card = true, .waits = true},
    [SIM_DETACH] = {detach, .of_card = true, .waits = true},
    [SIM_TAKE] = {take, .of_card = true, .waits = true},
    [SIM_GIVE] = {give, .of_piece = true, .waits = true},
    [SIM_HOLD] = {hold, .of_piece = true, .waits = true},
    [SIM_SHARE] = {share, .of_piece = true, .waits = true},
    [SIM_OPEN] = {open_token, .waits = true},
    [SIM_PROCESSES] = {processes, .of_card = true},
    [SIM_USED] = {used, .of_card = true},
    [SIM_LIMIT] = {limit, .of_card = true},
    [SIM_CHECKPOINT] = {checkpoint},
    [SIM_PAGE] = {page, .of_card = true, .waits = true},
};

void call_answer(struct node *node, struct process *process, const struct sim_request *request, int *fd,
                 struct answer *answer) {
    struct call call = {node, process, request, fd, answer, &answer->reply};
    *answer = (struct answer){.bytes = sizeof answer->reply, .fds = {-1, -1}};
    if (request->ask >= sizeof ANSWERS / sizeof *ANSWERS || !ANSWERS[request->ask].answer)
        answer->reply.result = SIM_MISUSED;
    else if (ANSWERS[request->ask].waits && process->state != SIM_IS_RUNNING)
        answer->reply.result = SIM_WAIT;
    else if (ANSWERS[request->ask].of_card && request->card >= node->file->cards)
        answer->reply.result = SIM_UNKNOWN;
    else if (ANSWERS[request->ask].of_piece && piece_is_context(node, request->id))
        answer->reply.result = SIM_MISUSED;
    else
        answer->reply.result = ANSWERS[request->ask].answer(&call);
}
