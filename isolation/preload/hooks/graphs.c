/* Memory that graphs allocate: none when a graph is created or instantiated; its physical memory comes at the first
 * launch or upload. The maximum is determined once, at instantiation. */
#include "../memory/growth.h"
#include "../memory/reserves.h"
#include "hooks.h"

REAL_CALL(cuGraphGetNodes, CUgraph graph, CUgraphNode *nodes, size_t *count);
REAL_CALL(cuGraphNodeGetType, CUgraphNode node, int *type);
REAL_CALL(cuGraphMemAllocNodeGetParams, CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params);
REAL_CALL(cuGraphKernelNodeGetParams, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params);
REAL_CALL(cuGraphKernelNodeGetParams_v2, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params);
REAL_CALL(cuGraphChildGraphNodeGetGraph, CUgraphNode node, CUgraph *graph);

/* By executable and card; entry.bytes: the most that a launch takes. */
static struct table executables;

static uint64_t key_of(CUgraphExec executable, unsigned card) { return (uint64_t)executable * MOST_CARDS + card; }

/* ---- memory of a graph ------------------------------------------------------------------------------------------ */

enum { DEEPEST = 32 };

struct needs {
    uint64_t bytes[MOST_CARDS];
    bool any, elsewhere; /* elsewhere: on a card that was not granted, or of unknown size */
    uint64_t nodes, locals; /* locals: local memory per thread of the kernel that needs most */
};

static void add_allocation(CUgraphNode node, struct needs *needs) {
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    const bool told = DRIVER(REAL(cuGraphMemAllocNodeGetParams)(node, &params)) == CUDA_SUCCESS;
    const unsigned card = told ? card_at(&params.pool.location, params.pool.type) : NO_CARD;
    if (card == HOST_MEMORY) return;
    if (card < MOST_CARDS)
        needs->bytes[card] += round_up(params.bytes, BLOCK_BYTES);
    else
        needs->elsewhere = true;
    needs->any = true;
}

/* The first form of the structure ends before `kernel`. */
static void add_kernel(CUgraphNode node, struct needs *needs) {
    CUDA_KERNEL_NODE_PARAMS params = {0};
    if (DRIVER(REAL(cuGraphKernelNodeGetParams_v2)(node, &params)) != CUDA_SUCCESS &&
        DRIVER(REAL(cuGraphKernelNodeGetParams)(node, &params)) != CUDA_SUCCESS)
        return;
    uint64_t locals = 0;
    if (params.function)
        locals = function_locals(params.function);
    else if (params.kernel)
        locals = kernel_locals(params.kernel);
    if (locals > needs->locals) needs->locals = locals;
}

static void add_graph(CUgraph graph, struct needs *needs, int depth);

static void add_node(CUgraphNode node, struct needs *needs, int depth) {
    int type;
    CUgraph child;
    if (DRIVER(REAL(cuGraphNodeGetType)(node, &type)) != CUDA_SUCCESS) return;
    needs->nodes += type != CU_GRAPH_NODE_TYPE_CHILD;
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) add_kernel(node, needs);
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) add_allocation(node, needs);
    if (type == CU_GRAPH_NODE_TYPE_CHILD && depth < DEEPEST &&
        DRIVER(REAL(cuGraphChildGraphNodeGetGraph)(node, &child)) == CUDA_SUCCESS)
        add_graph(child, needs, depth + 1);
}

static void add_graph(CUgraph graph, struct needs *needs, int depth) {
    size_t count = 0;
    if (DRIVER(REAL(cuGraphGetNodes)(graph, NULL, &count)) != CUDA_SUCCESS || !count) return;
    const size_t bytes = count * sizeof(CUgraphNode);
    CUgraphNode *nodes = os_map(bytes);
    if (!nodes) return;
    if (DRIVER(REAL(cuGraphGetNodes)(graph, nodes, &count)) == CUDA_SUCCESS)
        for (size_t n = 0; n < count; n++) add_node(nodes[n], needs, depth);
    os_unmap(nodes, bytes);
}

/* ---- launching -------------------------------------------------------------------------------------------------- */

static CUresult begin_on(unsigned card, uint64_t bytes) {
    if (!bytes) return CUDA_SUCCESS;
    TRY(account_begin(card, bytes));
    reserve_begin(reserve_of_graphs(card), bytes);
    return CUDA_SUCCESS;
}

/* Memory that a graph took beyond its nodes' sizes cannot be taken back; it is charged, so that nothing else fits. */
static void end(const uint64_t reserved[MOST_CARDS], unsigned cards) {
    for (unsigned card = 0; card < cards; card++)
        if (reserved[card] && !reserve_end(reserve_of_graphs(card), reserved[card])) account_exceed(card);
}

/* Reserves these bytes on each card; undoes all if one card has no room. */
static CUresult begin(const uint64_t wanted[MOST_CARDS], unsigned cards) {
    for (unsigned card = 0; card < cards; card++) {
        const CUresult result = begin_on(card, wanted[card]);
        if (result != CUDA_SUCCESS) return end(wanted, card), result;
    }
    return CUDA_SUCCESS;
}

/* A launch into a capturing stream takes no memory. */
static CUresult launch(CUgraphExec executable, CUstream stream, CUresult (*call)(CUgraphExec, CUstream)) {
    uint64_t reserved[MOST_CARDS];
    const unsigned cards = session_cards();
    if (table_is_empty(&executables)) return DRIVER(call(executable, stream));
    for (unsigned card = 0; card < cards; card++) {
        struct entry entry;
        reserved[card] = table_get(&executables, key_of(executable, card), &entry) ? entry.bytes : 0;
    }
    CUresult result = begin(reserved, cards);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && stream_captures(stream, false)) return DRIVER(call(executable, stream));
    if (result != CUDA_SUCCESS) return result;
    result = DRIVER(call(executable, stream));
    end(reserved, cards);
    return result;
}

/* Wait for the card's time first, since that may take long. */
HOOK_CALL(cuGraphLaunch, CUgraphExec executable, CUstream stream) {
    struct passage passage;
    TRY(passage_begin_graph(&passage, executable, stream, false));
    const CUresult result = launch(executable, stream, REAL(cuGraphLaunch));
    passage_end(&passage);
    return result;
}

HOOK_CALL(cuGraphLaunch_ptsz, CUgraphExec executable, CUstream stream) {
    struct passage passage;
    TRY(passage_begin_graph(&passage, executable, stream, true));
    const CUresult result = launch(executable, stream, REAL(cuGraphLaunch_ptsz));
    passage_end(&passage);
    return result;
}

HOOK_CALL(cuGraphUpload, CUgraphExec executable, CUstream stream) {
    return launch(executable, stream, REAL(cuGraphUpload));
}

HOOK_CALL(cuGraphUpload_ptsz, CUgraphExec executable, CUstream stream) {
    return launch(executable, stream, REAL(cuGraphUpload_ptsz));
}

/* ---- instantiating ---------------------------------------------------------------------------------------------- */

static void forget(CUgraphExec executable) {
    struct entry entry;
    for (unsigned card = 0; card < session_cards(); card++) table_take(&executables, key_of(executable, card), &entry);
}

HOOK_CALL(cuGraphExecDestroy, CUgraphExec executable) {
    struct entry what;
    const bool held = held_take(HELD_GROWN, (uint64_t)executable, &what);
    const CUresult result = DRIVER(REAL(cuGraphExecDestroy)(executable));
    if (held) held_end(HELD_GROWN, &what, result == CUDA_SUCCESS, true);
    if (result == CUDA_SUCCESS && !table_is_empty(&executables)) forget(executable);
    if (result == CUDA_SUCCESS) cost_forget(executable);
    return result;
}

static bool remember(CUgraphExec executable, const struct needs *needs) {
    for (unsigned card = 0; card < session_cards(); card++) {
        const struct entry entry = {
            .key = key_of(executable, card), .bytes = needs->bytes[card], .card = (uint16_t)card, .times = 1};
        struct entry before;
        if (entry.bytes && !table_put(&executables, &entry, &before)) return false;
    }
    return true;
}

/* Handles the driver's result for an executable that it created. */
static CUresult instantiated(CUresult result, CUgraphExec *made, const struct needs *needs) {
    if (result != CUDA_SUCCESS) return result;
    if (!table_is_empty(&executables)) forget(*made); /* a stale entry of the same address */
    if (!needs->any) return CUDA_SUCCESS;
    if (!needs->elsewhere && remember(*made, needs)) return CUDA_SUCCESS;
    forget(*made);
    DRIVER(REAL(cuGraphExecDestroy)(*made));
    *made = NULL;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static struct needs needs_of(CUgraph graph) {
    struct needs needs = {0};
    if (graph) add_graph(graph, &needs, 0);
    return needs;
}

/* Memory that the executable itself takes of the card, requested before it is created; it belongs to the current
 * context. */
struct claim {
    unsigned card;
    CUcontext context;
    uint64_t bytes;
};

static CUresult claim_begin(struct claim *claim, const struct needs *needs) {
    *claim = (struct claim){.card = NO_CARD};
    if (!needs->nodes || !current_card(&claim->card, &claim->context) || claim->card >= MOST_CARDS) return CUDA_SUCCESS;
    claim->bytes = needs->nodes * GRAPH_NODE_BYTES;
    TRY(account_begin(claim->card, claim->bytes));
    const CUresult result = locals_take(needs->locals);
    if (result != CUDA_SUCCESS) account_end(claim->card, claim->bytes);
    return result;
}

static CUresult claim_end(const struct claim *claim, CUresult result, CUgraphExec *made) {
    if (!claim->bytes) return result;
    const struct entry what = {.key = result == CUDA_SUCCESS ? (uint64_t)*made : 0,
                               .bytes = claim->bytes,
                               .of = (uint64_t)claim->context,
                               .card = (uint16_t)claim->card};
    uint64_t charged;
    const bool noted = what.key && held_note(HELD_GROWN, &what, &charged); /* otherwise NVML shows it */
    account_end(claim->card, noted ? 0 : claim->bytes);
    if (result == CUDA_SUCCESS) growth_comes(claim->card);
    return result;
}

#define INSTANTIATE(call)                                                                                              \
    do {                                                                                                               \
        const struct needs needs = needs_of(graph);                                                                    \
        struct claim claim;                                                                                            \
        TRY(claim_begin(&claim, &needs));                                                                              \
        return claim_end(&claim, instantiated(call, made, &needs), made);                                              \
    } while (0)

HOOK_CALL(cuGraphInstantiate, CUgraphExec *made, CUgraph graph, CUgraphNode *failed, char *log, size_t log_bytes) {
    INSTANTIATE(DRIVER(REAL(cuGraphInstantiate)(made, graph, failed, log, log_bytes)));
}

HOOK_CALL(cuGraphInstantiate_v2, CUgraphExec *made, CUgraph graph, CUgraphNode *failed, char *log, size_t log_bytes) {
    INSTANTIATE(DRIVER(REAL(cuGraphInstantiate_v2)(made, graph, failed, log, log_bytes)));
}

/* With an upload the memory is allocated at once. */
#define UPLOADED(uploads, needs, call)                                                                                 \
    __extension__({                                                                                                    \
        CUresult uploaded_ = (uploads) ? begin((needs).bytes, session_cards()) : CUDA_SUCCESS;                         \
        if (uploaded_ == CUDA_SUCCESS) {                                                                               \
            uploaded_ = DRIVER(call);                                                                                  \
            if (uploads) end((needs).bytes, session_cards());                                                          \
        }                                                                                                              \
        uploaded_;                                                                                                     \
    })

HOOK_CALL(cuGraphInstantiateWithFlags, CUgraphExec *made, CUgraph graph, unsigned long long flags) {
    const bool uploads = flags & CU_GRAPH_INSTANTIATE_UPLOAD;
    INSTANTIATE(UPLOADED(uploads, needs, REAL(cuGraphInstantiateWithFlags)(made, graph, flags)));
}

static CUresult with_params(CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params,
                            CUresult (*call)(CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *)) {
    const bool uploads = params && params->flags & CU_GRAPH_INSTANTIATE_UPLOAD;
    INSTANTIATE(UPLOADED(uploads, needs, call(made, graph, params)));
}

HOOK_CALL(cuGraphInstantiateWithParams, CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    return with_params(made, graph, params, REAL(cuGraphInstantiateWithParams));
}

HOOK_CALL(cuGraphInstantiateWithParams_ptsz, CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    return with_params(made, graph, params, REAL(cuGraphInstantiateWithParams_ptsz));
}

/* ---- updates ---------------------------------------------------------------------------------------------------- */

static CUresult changed(CUresult result, CUgraphExec executable) {
    if (result == CUDA_SUCCESS) cost_forget(executable);
    return result;
}

HOOK_CALL(cuGraphExecUpdate, CUgraphExec executable, CUgraph graph, CUgraphNode *failed, int *why) {
    return changed(DRIVER(REAL(cuGraphExecUpdate)(executable, graph, failed, why)), executable);
}

HOOK_CALL(cuGraphExecUpdate_v2, CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo *why) {
    return changed(DRIVER(REAL(cuGraphExecUpdate_v2)(executable, graph, why)), executable);
}

HOOK_CALL(cuGraphNodeSetEnabled, CUgraphExec executable, CUgraphNode node, unsigned enabled) {
    return changed(DRIVER(REAL(cuGraphNodeSetEnabled)(executable, node, enabled)), executable);
}

HOOK_CALL(cuGraphExecChildGraphNodeSetParams, CUgraphExec executable, CUgraphNode node, CUgraph child) {
    return changed(DRIVER(REAL(cuGraphExecChildGraphNodeSetParams)(executable, node, child)), executable);
}

HOOK_CALL(cuGraphExecKernelNodeSetParams, CUgraphExec executable, CUgraphNode node, const void *params) {
    return changed(DRIVER(REAL(cuGraphExecKernelNodeSetParams)(executable, node, params)), executable);
}

HOOK_CALL(cuGraphExecKernelNodeSetParams_v2, CUgraphExec executable, CUgraphNode node, const void *params) {
    return changed(DRIVER(REAL(cuGraphExecKernelNodeSetParams_v2)(executable, node, params)), executable);
}

HOOK_CALL(cuGraphExecMemcpyNodeSetParams, CUgraphExec executable, CUgraphNode node, const void *params,
          CUcontext context) {
    return changed(DRIVER(REAL(cuGraphExecMemcpyNodeSetParams)(executable, node, params, context)), executable);
}

HOOK_CALL(cuGraphExecMemsetNodeSetParams, CUgraphExec executable, CUgraphNode node, const void *params,
          CUcontext context) {
    return changed(DRIVER(REAL(cuGraphExecMemsetNodeSetParams)(executable, node, params, context)), executable);
}

HOOK_CALL(cuGraphExecNodeSetParams, CUgraphExec executable, CUgraphNode node, void *params) {
    return changed(DRIVER(REAL(cuGraphExecNodeSetParams)(executable, node, params)), executable);
}

HOOK_CALL(cuDeviceGraphMemTrim, CUdevice device) {
    struct reserve *reserve = reserve_of_graphs(card_of(device));
    if (!reserve) return DRIVER(REAL(cuDeviceGraphMemTrim)(device));
    reserve_begin_shrink(reserve);
    const CUresult result = DRIVER(REAL(cuDeviceGraphMemTrim)(device));
    reserve_end_shrink(reserve);
    return result;
}

void graphs_forget(void) { table_forget(&executables); }
