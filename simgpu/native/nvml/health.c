/* Memory errors: what ECC counted, and what was taken out of use for it. */
#include "library.h"

enum { CORRECTED, UNCORRECTED, ERROR_KINDS };
enum { VOLATILE, AGGREGATE, COUNTERS };
enum { IN_L1, IN_L2, IN_MEMORY, IN_REGISTERS, IN_TEXTURE, IN_SHARED, IN_CBU, IN_SRAM, LOCATIONS };

/* As CALL_CARD_OUT, for cards with ECC. */
#define CALL_ECC(pointer)                                                                                              \
    CALL_CARD_OUT(pointer);                                                                                            \
    if (!model->ecc) return NVML_NOT_SUPPORTED

NVML(nvmlDeviceGetEccMode, nvmlDevice device, u32 *current, u32 *pending) {
    CALL_ECC(current);
    NEEDS(pending != NULL);
    *current = *pending = NVML_ON;
    return NVML_OK;
}

NVML(nvmlDeviceGetDefaultEccMode, nvmlDevice device, u32 *mode) {
    CALL_ECC(mode);
    *mode = NVML_ON;
    return NVML_OK;
}

/* All errors of the simulation are ones of device memory, and it begins with none. */
static u64 errors_of(const struct sim_live *live, u32 kind) {
    return atomic_load(kind == CORRECTED ? &live->ecc_corrected : &live->ecc_uncorrected);
}

NVML(nvmlDeviceGetTotalEccErrors, nvmlDevice device, u32 kind, u32 counter, u64 *errors) {
    CALL_ECC(errors);
    NEEDS(kind < ERROR_KINDS && counter < COUNTERS);
    *errors = errors_of(live, kind);
    return NVML_OK;
}

NVML(nvmlDeviceGetMemoryErrorCounter, nvmlDevice device, u32 kind, u32 counter, u32 location, u64 *errors) {
    CALL_ECC(errors);
    NEEDS(kind < ERROR_KINDS && counter < COUNTERS && location < LOCATIONS);
    *errors = location == IN_MEMORY ? errors_of(live, kind) : 0;
    return NVML_OK;
}

NVML(nvmlDeviceGetDetailedEccErrors, nvmlDevice device, u32 kind, u32 counter, struct nvml_ecc_counts *counts) {
    CALL_ECC(counts);
    NEEDS(kind < ERROR_KINDS && counter < COUNTERS);
    *counts = (struct nvml_ecc_counts){.memory = errors_of(live, kind)};
    return NVML_OK;
}

NVML(nvmlDeviceClearEccErrorCounts, nvmlDevice device, u32 counter) {
    CALL_CARD;
    NEEDS(counter < COUNTERS);
    if (!model->ecc) return NVML_NOT_SUPPORTED;
    TRY(check_root());
    return errors_of(live, CORRECTED) + errors_of(live, UNCORRECTED) == 0 ? NVML_OK : NVML_NOT_SUPPORTED;
}

/* ---- Pages were retired up to Turing, rows are remapped since Ampere; none ever was ------------------------------ */

enum { RETIREMENT_CAUSES = 2, BANKS = 640 };

#define CALL_PAGES(pointer)                                                                                            \
    CALL_ECC(pointer);                                                                                                 \
    if (model->architecture >= NVML_AMPERE) return NVML_NOT_SUPPORTED

#define CALL_ROWS(pointer)                                                                                             \
    CALL_ECC(pointer);                                                                                                 \
    if (model->architecture < NVML_AMPERE) return NVML_NOT_SUPPORTED

NVML(nvmlDeviceGetRetiredPages, nvmlDevice device, u32 cause, u32 *room, u64 *pages) {
    CALL_PAGES(room);
    NEEDS(cause < RETIREMENT_CAUSES);
    return give_count(0, room, pages);
}

NVML(nvmlDeviceGetRetiredPages_v2, nvmlDevice device, u32 cause, u32 *room, u64 *pages, u64 *times) {
    CALL_PAGES(room);
    (void)times;
    NEEDS(cause < RETIREMENT_CAUSES);
    return give_count(0, room, pages);
}

NVML(nvmlDeviceGetRetiredPagesPendingStatus, nvmlDevice device, u32 *pending) {
    CALL_PAGES(pending);
    *pending = NVML_OFF;
    return NVML_OK;
}

NVML(nvmlDeviceGetRemappedRows, nvmlDevice device, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
    CALL_ROWS(corrected);
    NEEDS(uncorrected != NULL && pending != NULL && failed != NULL);
    *corrected = *uncorrected = *pending = *failed = 0;
    return NVML_OK;
}

NVML(nvmlDeviceGetRowRemapperHistogram, nvmlDevice device, struct nvml_row_histogram *histogram) {
    CALL_ROWS(histogram);
    *histogram = (struct nvml_row_histogram){.max = BANKS};
    return NVML_OK;
}
