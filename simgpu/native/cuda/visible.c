/* Which cards are a process's devices, and their order. */
#include "visible.h"

#include <stdlib.h>
#include <string.h>

struct choice {
    u32 cards[SIM_CARDS];
    u32 count;
};

static const struct sim_model *model_of(const struct sim_node *node, u32 card) { return &node->file->card[card].model; }

static u64 speed_of(const struct sim_model *model) { return (u64)model->sms * model->sm_clock_mhz; }

/* Unless told to order by PCI address, the driver puts the fastest card first and keeps the others in order. */
static void order(const struct sim_node *node, struct choice *whole) {
    const char *by = getenv("CUDA_DEVICE_ORDER");
    if (by && !strcmp(by, "PCI_BUS_ID")) return;
    u32 best = 0;
    for (u32 i = 1; i < whole->count; i++)
        if (speed_of(model_of(node, whole->cards[i])) > speed_of(model_of(node, whole->cards[best]))) best = i;
    if (!best) return;
    u32 fastest = whole->cards[best];
    memmove(whole->cards + 1, whole->cards, best * sizeof *whole->cards);
    whole->cards[0] = fastest;
}

/* Separates whole cards and MIG instances; a card in MIG mode is no device itself. */
static void sort_out(const struct sim_node *node, struct choice *whole, struct choice *instances) {
    u32 cards[SIM_CARDS];
    u32 count = sim_visible(node, cards);
    for (u32 i = 0; i < count; i++) {
        const struct sim_model *model = model_of(node, cards[i]);
        if (model->parent >= 0)
            instances->cards[instances->count++] = cards[i];
        else if (!model->mig_enabled)
            whole->cards[whole->count++] = cards[i];
    }
    order(node, whole);
}

/* The card that one entry of CUDA_VISIBLE_DEVICES denotes: an index, or a UUID prefix that matches one card only.
 */
static int meant(const struct sim_node *node, const char *word, size_t length, const struct choice *whole,
                 const struct choice *instances) {
    if (!length) return -1;
    if (strncmp(word, "GPU-", 4) && strncmp(word, "MIG-", 4)) {
        char *end;
        long index = strtol(word, &end, 10);
        bool valid = end == word + length && index >= 0 && index < (long)whole->count;
        return valid ? (int)whole->cards[index] : -1;
    }
    const struct choice *among = word[0] == 'G' ? whole : instances;
    int found = -1;
    for (u32 i = 0; i < among->count; i++) {
        if (strncmp(model_of(node, among->cards[i])->uuid, word, length)) continue;
        if (found >= 0) return -1;
        found = (int)among->cards[i];
    }
    return found;
}

/* The first invalid entry ends the list; a duplicate invalidates all of it. */
static void choose(const struct sim_node *node, const char *words, const struct choice *whole,
                   const struct choice *instances, struct choice *chosen) {
    while (*words) {
        words += strspn(words, " ");
        size_t length = strcspn(words, ", ");
        int card = meant(node, words, length, whole, instances);
        if (card < 0) return;
        for (u32 i = 0; i < chosen->count; i++)
            if (chosen->cards[i] == (u32)card) {
                chosen->count = 0;
                return;
            }
        chosen->cards[chosen->count++] = (u32)card;
        words += length;
        words += strspn(words, " ");
        if (*words != ',') return;
        words++;
    }
}

/* A process uses one MIG instance and no whole card; without an instance, whole cards. */
static void one_instance_or_cards(const struct sim_node *node, struct choice *chosen) {
    for (u32 i = 0; i < chosen->count; i++)
        if (model_of(node, chosen->cards[i])->parent >= 0) {
            *chosen = (struct choice){.cards = {chosen->cards[i]}, .count = 1};
            return;
        }
}

u32 visible_cards(const struct sim_node *node, u32 cards[SIM_CARDS]) {
    struct choice whole = {0}, instances = {0}, chosen = {0};
    sort_out(node, &whole, &instances);
    const char *words = getenv("CUDA_VISIBLE_DEVICES");
    if (words)
        choose(node, words, &whole, &instances, &chosen);
    else if (instances.count)
        chosen = instances;
    else
        chosen = whole;
    one_instance_or_cards(node, &chosen);
    memcpy(cards, chosen.cards, chosen.count * sizeof *cards);
    return chosen.count;
}
