#include "control.h"

#include "accounts.h"
#include "faults.h"
#include "sampler.h"
#include "sockets.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_COMMAND = 256, MOST_WORDS = 4 };

static const char *config_path;

struct order {
    struct node *node;
    char *word[MOST_WORDS + 1]; /* begins with the command */
    int words;
    FILE *answer;
};

/* ---- parsing commands ------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool refuse(const struct order *order, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(order->answer, "error: %s: ", order->word[0]);
    vfprintf(order->answer, format, arguments);
    va_end(arguments);
    return false;
}

static bool number(const struct order *order, int word, u64 most, u64 *value) {
    char *end;
    errno = 0;
    *value = isdigit((unsigned char)*order->word[word]) ? strtoull(order->word[word], &end, 10) : UINT64_MAX;
    if (*value != UINT64_MAX && !errno && !*end && *value <= most) return true;
    return refuse(order, "`%.40s` is no number up to %llu", order->word[word], (unsigned long long)most);
}

static bool card_of(const struct order *order, u32 *card) {
    u64 value;
    u32 cards = order->node->file->cards;
    *card = 0;
    if (!cards) return refuse(order, "this node has no card");
    if (!number(order, 1, cards - 1, &value)) return false;
    *card = (u32)value;
    return true;
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

/* The process that the word names, which must be on the card; NULL, meaning all, if there is no such word. */
static bool process_on(const struct order *order, int word, u32 card, const struct process **process) {
    u64 pid;
    *process = NULL;
    if (order->words <= word) return true;
    if (!number(order, word, UINT32_MAX, &pid)) return false;
    *process = process_with(order->node, (u32)pid);
    if (*process && (*process)->account[card].contexts) return true;
    return refuse(order, "process %s has no context on card %u", order->word[word], card);
}

static bool order_xid(const struct order *order) {
    u64 xid;
    u32 card;
    const struct process *process;
    if (!card_of(order, &card) || !number(order, 2, UINT32_MAX, &xid)) return false;
    if (!process_on(order, 3, card, &process)) return false;
    fault_xid(order->node, card, (u32)xid, process);
    return true;
}

static bool order_stick(const struct order *order) {
    u32 card;
    const struct process *process;
    if (!card_of(order, &card) || !process_on(order, 2, card, &process)) return false;
    fault_stick(order->node, card, process);
    return true;
}

static bool order_ecc(const struct order *order) {
    u64 count;
    u32 card;
    bool corrected = !strcmp(order->word[2], "corrected");
    if (!card_of(order, &card) || !number(order, 3, UINT32_MAX, &count)) return false;
    if (!corrected && strcmp(order->word[2], "uncorrected"))
        return refuse(order, "`%.40s` is neither corrected nor uncorrected", order->word[2]);
    if (!order->node->file->card[card].model.ecc) return refuse(order, "card %u has no ECC", card);
    fault_ecc(order->node, card, corrected, count);
    return true;
}

static bool order_lose(const struct order *order) {
    enum { FELL_OFF_THE_BUS = 79 };
    u32 card;
    if (!card_of(order, &card)) return false;
    fault_lose(order->node, card, FELL_OFF_THE_BUS);
    return true;
}

static bool order_restore(const struct order *order) {
    u32 card;
    if (!card_of(order, &card)) return false;
    fault_restore(order->node, card);
    return true;
}

static bool order_fail(const struct order *order) {
    u64 count;
    u32 card;
    if (!card_of(order, &card) || !number(order, 2, UINT32_MAX, &count)) return false;
    order->node->to_fail[card] = (u32)count;
    return true;
}

static bool order_blind(const struct order *order) {
    static const char *const what[] = {[SIM_SEES] = "no", "bytes", "lists", "memory"};
    u32 card, n = 0;
    if (!card_of(order, &card)) return false;
    while (n < sizeof what / sizeof *what && strcmp(what[n], order->word[2])) n++;
    if (n == sizeof what / sizeof *what)
        return refuse(order, "`%.40s` is none of bytes, lists, memory and no", order->word[2]);
    fault_blind(order->node, card, n);
    return true;
}

static bool order_nvml(const struct order *order) {
    struct sim_trouble *trouble = &order->node->file->trouble;
    const char *what = order->word[1];
    u64 value;
    if (order->words == 2 && !strcmp(what, "hang")) return set_and_wake(&trouble->nvml_hang, 1), true;
    if (order->words == 2 && !strcmp(what, "resume")) return set_and_wake(&trouble->nvml_hang, 0), true;
    if (order->words != 3 || (strcmp(what, "delay") && strcmp(what, "answer")))
        return refuse(order, "say hang, resume, delay MILLISECONDS or answer NUMBER");
    if (!number(order, 2, UINT32_MAX, &value)) return false;
    if (*what == 'd')
        atomic_store(&trouble->nvml_delay_ns, value * 1000000);
    else
        atomic_store(&trouble->nvml_answer, (u32)value);
    return true;
}

/* Reloads the driver: another node, from the current content of its file. */
static bool order_reload(const struct order *order) {
    static struct config config;
    struct node *node = order->node;
    char error[256];
    if (!config_read_file(&config, config_path, error, sizeof error)) return refuse(order, "%s", error);
    node_state(node, SIM_RELOADING);
    while (!LIST_EMPTY(&node->processes)) process_end(node, LIST_FIRST(&node->processes));
    node_close(node);
    if (node_open(node, &config)) {
        refuse(order, "new memory files: %s; simgpud ends", strerror(errno));
        fclose(order->answer);
        exit(EXIT_FAILURE);
    }
    sampling_restart(node);
    node_state(node, SIM_RUNNING);
    return true;
}

static bool order_peaks(const struct order *order) {
    if (strcmp(order->word[1], "reset")) return refuse(order, "say reset");
    account_reset_peaks(order->node);
    return true;
}

static void say_card(const struct order *order, u32 card) {
    const struct sim_model *model = &order->node->file->card[card].model;
    struct sim_live *live = &order->node->file->card[card].live;
    fprintf(order->answer, "\ncard %u uuid=%s used=%lu peak=%lu memory=%lu reserved=%lu health=%s xid=%u", card,
            model->uuid, atomic_load(&live->used), atomic_load(&live->peak), model->memory, model->reserved,
            atomic_load(&live->health) == SIM_LOST ? "lost" : "healthy", atomic_load(&live->last_xid));
    for (u32 row = 0; row < SIM_ROWS; row++)
        if (order->node->in_row[card][row])
            fprintf(order->answer, "\nprocess %u card=%u row=%u bytes=%lu peak=%lu busy_ns=%lu fault=%u",
                    order->node->in_row[card][row]->pid, card, row, atomic_load(&live->row_bytes[row]),
                    atomic_load(&live->row_peak[row]), account_busy(order->node, card, row),
                    atomic_load(&live->fault[row]));
}

static bool order_status(const struct order *order) {
    const struct node *node = order->node;
    fprintf(order->answer, "ok node driver=%s boot=%016lx cards=%u processes=%u clients=%u pieces=%u kept=%u",
            node->file->driver, node->file->boot, node->file->cards, node->process_count, node->client_count,
            node->pieces.in_use, node->pieces.kept);
    for (u32 card = 0; card < node->file->cards; card++) {
        node_advance(order->node, card);
        say_card(order, card);
    }
    return true;
}

static const struct {
    const char *name, *words;
    int least, most;
    bool (*order)(const struct order *order); /* false: it has reported the error */
} ORDERS[] = {
    {"xid", "CARD NUMBER [PID]", 3, 4, order_xid},
    {"ecc", "CARD corrected|uncorrected COUNT", 4, 4, order_ecc},
    {"lose", "CARD", 2, 2, order_lose},
    {"restore", "CARD", 2, 2, order_restore},
    {"fail", "CARD COUNT", 3, 3, order_fail},
    {"blind", "CARD bytes|lists|memory|no", 3, 3, order_blind},
    {"stick", "CARD [PID]", 2, 3, order_stick},
    {"nvml", "hang|resume|delay MILLISECONDS|answer NUMBER", 2, 3, order_nvml},
    {"reload", "", 1, 1, order_reload},
    {"peaks", "reset", 2, 2, order_peaks},
    {"status", "", 1, 1, order_status},
};

static void obey(struct order *order) {
    size_t n = 0;
    while (n < sizeof ORDERS / sizeof *ORDERS && strcmp(ORDERS[n].name, order->word[0])) n++;
    if (n == sizeof ORDERS / sizeof *ORDERS)
        refuse(order, "no such command");
    else if (order->words < ORDERS[n].least || order->words > ORDERS[n].most)
        refuse(order, "say %s %s", ORDERS[n].name, ORDERS[n].words);
    else if (ORDERS[n].order(order) && ftell(order->answer) == 0)
        fputs("ok", order->answer);
}

/* ---- packets ---------------------------------------------------------------------------------------------------- */

static void answer_text(struct node *node, char *text, FILE *answer) {
    struct order order = {.node = node, .answer = answer};
    char *rest = text;
    for (char *word; order.words <= MOST_WORDS && (word = strsep(&rest, " \n"));)
        if (*word) order.word[order.words++] = word;
    if (order.words)
        obey(&order);
    else
        fputs("error: an empty command", answer);
}

static void order_came(struct node *node, struct watch *watch, unsigned events) {
    char text[LONGEST_COMMAND + 1], *answer = NULL;
    size_t bytes = LONGEST_COMMAND, length = 0;
    int fd;
    (void)events;
    enum packet packet = socket_receive(watch->fd, text, &bytes, &fd);
    if (fd >= 0) close(fd);
    if (packet == PACKET_NONE) return;
    FILE *to = packet == PACKET_END ? NULL : open_memstream(&answer, &length);
    if (to) {
        text[packet == PACKET_READ ? bytes : 0] = 0;
        answer_text(node, text, to);
        fclose(to);
    }
    if (!to || !socket_send(watch->fd, answer, length, (int[2]){-1, -1})) {
        loop_close(node->loop, watch);
        free(watch);
    }
    free(answer);
}

static void knocked(struct node *node, struct watch *watch, unsigned events) {
    (void)events;
    int socket = socket_accept(watch->fd);
    if (socket < 0) return;
    struct watch *client = malloc(sizeof *client);
    if (client) *client = (struct watch){.fd = socket, .ready = order_came};
    if (client && !loop_watch(node->loop, client)) return;
    free(client);
    close(socket);
}

int control_listen(struct node *node, const char *path, const char *config) {
    static struct watch listener = {.ready = knocked};
    config_path = config;
    listener.fd = socket_listen(path, 0600);
    return listener.fd < 0 ? -1 : loop_watch(node->loop, &listener);
}
