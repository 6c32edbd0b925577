/* One of several processes that allocate and free memory by every path, at random, in several threads.
 *
 *   race --page FILE --slot N [--card N] [--threads N] [--operations N] [--mib N] [--context-mib N] [--seed N] [--kinds
 * A,B]
 *
 * It begins with a line of JSON, does a round for each input line, and prints a line of results; it ends with its
 * input. It keeps its memory between rounds. Each refusal is judged by the claims of all racing processes during the
 * request: see claims.h. Exit status 3: there was no room for its context.
 */
#include "claims.h"
#include "kinds.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELD = 12, MOST_THREADS = 64, NO_ROOM = 3, SHARING = 16 };

struct options {
    const char *page, *kinds;
    u64 slot, card, threads, operations, mib, context_mib, seed;
};

struct worker {
    pthread_t thread;
    u64 random;
    CUstream stream; /* waits for no other, so that no capture interferes with it */
    struct held held[HELD];
    u64 refused, wrong, opened, away; /* away: the broker did not reply within a call's timeout */
    const char *wrong_kind; /* of the first refusal that was wrong */
    u64 wrong_bytes;
    int64_t wrong_room;
};

static struct options options = {.threads = 4, .operations = 20, .mib = 64, .context_mib = 64, .seed = 1, .kinds = ""};
static struct worker workers[MOST_THREADS];
static CUcontext context;

static u64 next(u64 *state) { /* splitmix64 */
    u64 z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* ---- the default pool: all threads' together --------------------------------------------------------------------- */

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static u64 pool_claimed;

/* Claims the pool's current size instead of `asked`, which was claimed while it might grow. */
static void pool_settle(u64 asked) {
    pthread_mutex_lock(&pool_lock);
    const u64 reserved = pool_reserved();
    if (reserved > pool_claimed) claim_more(reserved - pool_claimed);
    if (reserved < pool_claimed) claim_less(pool_claimed - reserved);
    pool_claimed = reserved;
    pthread_mutex_unlock(&pool_lock);
    claim_less(asked);
}

/* ---- contexts: all threads' together ----------------------------------------------------------------------------- */

static pthread_mutex_t passing_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned passing;

/* A process reserves room for one, however many threads create one at once. */
static void pass_begins(u64 worst) {
    pthread_mutex_lock(&passing_lock);
    if (!passing++) claim_more(worst);
    pthread_mutex_unlock(&passing_lock);
}

static void pass_ends(u64 worst) {
    pthread_mutex_lock(&passing_lock);
    if (!--passing) claim_less(worst);
    pthread_mutex_unlock(&passing_lock);
}

/* ---- taking and giving ------------------------------------------------------------------------------------------- */

static void judge(struct worker *worker, const struct asking *asking, const char *kind, u64 bytes) {
    const int64_t room = asking_room(asking);
    worker->refused++;
    if (room < 0 || worker->wrong++) return;
    worker->wrong_kind = kind;
    worker->wrong_bytes = bytes;
    worker->wrong_room = room;
}

static void take(struct worker *worker, struct held *held, const struct kind *kind, u64 bytes) {
    const u64 worst = kind->worst(bytes);
    *held = (struct held){.bytes = bytes, .stream = worker->stream};
    if (kind->passing)
        pass_begins(worst);
    else
        claim_more(worst);
    const struct asking asking = asking_begins();
    const CUresult result = kind->take(held, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        judge(worker, &asking, kind->name, bytes);
    else if (result == CUDA_ERROR_NOT_INITIALIZED)
        worker->away++;
    else
        require(result, kind->name);
    if (result == CUDA_SUCCESS) held->kind = kind;
    if (kind->kept)
        pool_settle(worst);
    else if (kind->passing)
        pass_ends(worst);
    else if (result == CUDA_SUCCESS)
        held->claimed = worst;
    else
        claim_less(worst);
}

static void withdraw(const struct held *held);

static void give(struct held *held) {
    withdraw(held);
    held->kind->give(held);
    if (held->kind->kept) pool_settle(0);
    if (held->claimed) claim_less(held->claimed);
    *held = (struct held){0};
}

/* ---- memory of another process ----------------------------------------------------------------------------------- */

static u64 nothing(u64 bytes) { return bytes; }

static void give_opened(struct held *held) { NEED(cuIpcCloseMemHandle, held->address); }

static const struct kind opened = {.name = "opened", .worst = nothing, .give = give_opened};

enum { HANDLE_WORDS = sizeof(CUipcMemHandle) / sizeof(u64) };

union handle_words {
    CUipcMemHandle ipc;
    u64 words[HANDLE_WORDS];
};

static struct held *_Atomic offered; /* the offer of this process; one at a time */

/* Odd: it is being written. A handle is never combined with the length of another. */
static void offer(struct worker *worker, struct held *held) {
    struct offer *mine = claims_offer((unsigned)options.slot);
    struct held *none = NULL;
    if (!atomic_compare_exchange_strong(&offered, &none, held)) return;
    union handle_words made;
    const CUresult result = driver.cuIpcGetMemHandle(&made.ipc, held->address);
    if (result == CUDA_ERROR_NOT_INITIALIZED) {
        worker->away++;
        atomic_store(&offered, NULL);
        return;
    }
    require(result, "cuIpcGetMemHandle");
    atomic_fetch_add(&mine->version, 1);
    for (unsigned n = 0; n < HANDLE_WORDS; n++) atomic_store(&mine->ipc[n], made.words[n]);
    atomic_store(&mine->bytes, held->bytes);
    atomic_fetch_add(&mine->version, 1);
}

/* Called before it is freed, also while others have it open. */
static void withdraw(const struct held *held) {
    if (atomic_load(&offered) != held) return;
    atomic_store(&claims_offer((unsigned)options.slot)->bytes, 0);
    atomic_store(&offered, NULL);
}

/* Offers of the slot's previous process, which may have been killed meanwhile. */
static void withdraw_all(void) {
    struct offer *mine = claims_offer((unsigned)options.slot);
    atomic_store(&mine->bytes, 0);
    atomic_store(&mine->version, (atomic_load(&mine->version) + 1) / 2 * 2);
}

static u64 read_offer(struct offer *theirs, CUipcMemHandle *ipc) {
    const u64 version = atomic_load(&theirs->version), bytes = atomic_load(&theirs->bytes);
    union handle_words read;
    for (unsigned n = 0; n < HANDLE_WORDS; n++) read.words[n] = atomic_load(&theirs->ipc[n]);
    *ipc = read.ipc;
    return version % 2 || version != atomic_load(&theirs->version) ? 0 : bytes;
}

/* Every holder claims it: its maker and all others. Memory that was freed meanwhile can't be opened. */
static void open_other(struct worker *worker, struct held *held) {
    const u64 whose = options.slot + 1 + next(&worker->random) % (CLAIM_MAILBOX - 1);
    CUipcMemHandle ipc;
    const u64 bytes = read_offer(claims_offer((unsigned)whose), &ipc);
    if (!bytes) return;
    *held = (struct held){.bytes = bytes, .claimed = bytes};
    claim_more(bytes);
    if (driver.cuIpcOpenMemHandle_v2(&held->address, ipc, 1) == CUDA_SUCCESS) {
        held->kind = &opened;
        worker->opened++;
        return;
    }
    claim_less(bytes);
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

static bool wanted(const char *name) {
    if (!*options.kinds) return true;
    const char *found = strstr(options.kinds, name);
    const size_t length = strlen(name);
    return found && (found == options.kinds || found[-1] == ',') && (!found[length] || found[length] == ',');
}

static const struct kind *any_kind(u64 *random) {
    const struct kind *kind = &kinds[next(random) % kinds_count];
    while (!wanted(kind->name)) kind = &kinds[next(random) % kinds_count];
    return kind;
}

static void operate(struct worker *worker) {
    struct held *held = &worker->held[next(&worker->random) % HELD];
    const u64 choice = next(&worker->random) % SHARING;
    const bool plain = held->kind == &kinds[0];
    if (plain && choice < 2 && wanted("opened"))
        offer(worker, held);
    else if (held->kind)
        give(held);
    else if (choice == 0 && wanted("opened"))
        open_other(worker, held);
    else
        take(worker, held, any_kind(&worker->random), 2 * MIB * (1 + next(&worker->random) % (options.mib / 2)));
}

static void *work(void *argument) {
    struct worker *worker = argument;
    NEED(cuCtxSetCurrent, context);
    if (!worker->stream) NEED(cuStreamCreate, &worker->stream, 1);
    for (u64 i = 0; i < options.operations; i++) operate(worker);
    return NULL;
}

static void tell(void) {
    struct worker all = {0};
    for (u64 i = 0; i < options.threads; i++) {
        struct worker *each = &workers[i];
        if (each->wrong && !all.wrong_kind) {
            all.wrong_kind = each->wrong_kind;
            all.wrong_bytes = each->wrong_bytes;
            all.wrong_room = each->wrong_room;
        }
        all.refused += each->refused;
        all.wrong += each->wrong;
        all.opened += each->opened;
        all.away += each->away;
        each->refused = each->wrong = each->opened = each->away = 0;
    }
    printf("{\"operations\":%llu,\"refused\":%llu,\"wrong\":%llu,\"opened\":%llu,\"away\":%llu",
           (unsigned long long)(options.threads * options.operations), (unsigned long long)all.refused,
           (unsigned long long)all.wrong, (unsigned long long)all.opened, (unsigned long long)all.away);
    if (all.wrong_kind)
        printf(",\"first\":\"%s of %llu bytes refused with room for %lld more\"", all.wrong_kind,
               (unsigned long long)all.wrong_bytes, (long long)all.wrong_room);
    printf("}\n");
    fflush(stdout);
}

static void round_of_all(void) {
    for (u64 i = 0; i < options.threads; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) stop_with("no more threads");
    for (u64 i = 0; i < options.threads; i++) pthread_join(workers[i].thread, NULL);
    tell();
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static void begin(void) {
    CUdevice device;
    struct worker starting = {0};
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, (int)options.card);
    claim_more(options.context_mib * MIB);
    const struct asking asking = asking_begins();
    const CUresult result = driver.cuDevicePrimaryCtxRetain(&context, device);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        judge(&starting, &asking, "context", options.context_mib * MIB);
        claim_less(options.context_mib * MIB);
        printf("{\"no_room\":true,\"wrong\":%llu,\"room\":%lld}\n", (unsigned long long)starting.wrong,
               (long long)starting.wrong_room);
        exit(NO_ROOM);
    }
    require(result, "cuDevicePrimaryCtxRetain");
    NEED(cuCtxSetCurrent, context);
    kinds_begin(device, options.context_mib * MIB);
    for (u64 i = 0; i < options.threads; i++) workers[i].random = options.seed * MOST_THREADS + i;
    printf("{\"ready\":true}\n");
    fflush(stdout);
}

static void read_options(int count, char **words) {
    static const struct option known[] = {
        {"page", 1, NULL, 'p'},  {"kinds", 1, NULL, 'k'},
        {"slot", 1, NULL, 0},    {"card", 1, NULL, 1},
        {"threads", 1, NULL, 2}, {"operations", 1, NULL, 3},
        {"mib", 1, NULL, 4},     {"context-mib", 1, NULL, 5},
        {"seed", 1, NULL, 6},    {0},
    };
    u64 *const numbers[] = {&options.slot, &options.card,        &options.threads, &options.operations,
                            &options.mib,  &options.context_mib, &options.seed};
    for (int option; (option = getopt_long(count, words, "", known, NULL)) != -1;) {
        if (option == '?') exit(2);
        if (option == 'p')
            options.page = optarg;
        else if (option == 'k')
            options.kinds = optarg;
        else
            *numbers[option] = strtoull(optarg, NULL, 10);
    }
    if (!options.page || options.threads > MOST_THREADS || options.mib < 2) stop_with("race: see its first comment");
}

int main(int count, char **words) {
    read_options(count, words);
    claims_open(options.page, (unsigned)options.slot);
    withdraw_all();
    calls_find();
    begin();
    for (int c; (c = getchar()) != EOF;)
        if (c == '\n') round_of_all();
    return 0;
}
