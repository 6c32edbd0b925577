/* The interface of cases: calls to the driver, and lines for the answers. run.c and tell.c implement it.
 *
 * A *case* is a function in a separate process, so it may crash, hang or break its context without harm to others. It
 * calls the driver that the loader finds, by name, and prints *facts*: lines `area.case.fact = value`. A value is the
 * same on every card that behaves alike: a code by name, a size, a multiple, yes or no, what came first. Nothing else
 * is printed: no address, no time, no size of this card.
 */
#pragma once

#include "calls.h"
#include "common/words.h"
#include "driver/cuda_abi.h"
#include "driver/nvml_abi.h"

struct conformance_case {
    const char *name;
    void (*run)(void);
};

/* Opens the definition of a case; the linker collects them. */
#define CASE(area, name)                                                                                               \
    static void case_##area##_##name(void);                                                                            \
    __attribute__((section("cases"), used)) static const struct conformance_case entry_##area##_##name = {             \
        #area "." #name, case_##area##_##name};                                                                        \
    static void case_##area##_##name(void)

/* ---- tell.c: lines ----------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) void tell(const char *fact, const char *format, ...);
void tell_number(const char *fact, u64 value);
void tell_yes(const char *fact, bool value);
void tell_cuda(const char *fact, CUresult code);
void tell_nvml(const char *fact, nvml_result code);

/* Ends the case; the line `area.case.outcome` gives the reason. */
__attribute__((noreturn, format(printf, 1, 2))) void skip(const char *format, ...);
__attribute__((noreturn, format(printf, 1, 2))) void stop(const char *format, ...);

/* ---- tell.c: calls ----------------------------------------------------------------------------------------------- */

/* A function of the driver; a missing one ends the case. */
void *cuda_symbol(const char *name);
void *nvml_symbol(const char *name);
#define CU(name, ...) ((__typeof__(name) *)cuda_symbol(#name))(__VA_ARGS__)
#define NV(name, ...) ((__typeof__(name) *)nvml_symbol(#name))(__VA_ARGS__)

/* The same, and prints the result as a fact. */
#define TELL(fact, name, ...) tell_cuda(fact, CU(name, __VA_ARGS__))
#define TELL_NV(fact, name, ...) tell_nvml(fact, NV(name, __VA_ARGS__))

/* The same; a result other than success ends the case. */
#define NEED(name, ...) need(#name, CU(name, __VA_ARGS__))
#define NEED_NV(name, ...) need_nvml(#name, NV(name, __VA_ARGS__))
void need(const char *name, CUresult code);
void need_nvml(const char *name, nvml_result code);

/* ---- card.c: the start of most cases ----------------------------------------------------------------------------- */

enum { MIB = 1 << 20 };

/* Card 0 with its primary context current. */
CUdevice open_card(void);

/* The card's first NVML handle, of the same card as open_card's. */
nvmlDevice open_nvml(void);

CUstream new_stream(unsigned flags);
CUevent new_event(unsigned flags);
CUevent recorded(CUstream stream);
CUdeviceptr allocated(size_t bytes);

/* Free memory by cuMemGetInfo. */
size_t free_bytes(void);

/* The kernel that spins for as many nanoseconds as its parameter says. */
const char *spinning_image(void);
CUfunction spinning(void);
CUresult spin(CUstream stream, u64 ms);

/* Long enough that a call which does not wait for it returns long before its end. */
enum { LONG_MS = 500 };

/* Starts a long kernel in the stream. After a call, tell_waited prints whether the kernel had ended when it
   returned. */
CUevent long_kernel(CUstream stream);
void tell_waited(const char *fact, CUevent end);

/* Begins the capture of a stream. */
void capture(CUstream stream, CUstreamCaptureMode mode);
CUgraph captured(CUstream stream);

/* Runs a function in another thread, with the caller's context, and waits for its end. */
void in_thread(void (*run)(void *data), void *data);

/* A second process that has not used the driver yet; each has one end of a channel. */
void in_process(void (*run)(int channel), int *channel);
void send_bytes(int channel, const void *bytes, size_t count);
void receive_bytes(int channel, void *bytes, size_t count);
