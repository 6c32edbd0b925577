/* The functions that cases call, looked up by name as programs do: nothing is linked. */
#pragma once

#include "common/words.h"
#include "driver/cuda_calls.h"
#include "driver/nvml_abi.h"

CUresult cuMemExportToShareableHandle(void *descriptor, CUmemGenericAllocationHandle handle, unsigned type, u64 flags);

nvml_result nvmlInit_v2(void);
nvml_result nvmlInitWithFlags(u32 flags);
nvml_result nvmlShutdown(void);
const char *nvmlErrorString(nvml_result code);
nvml_result nvmlSystemGetDriverVersion(char *text, u32 room);
nvml_result nvmlSystemGetNVMLVersion(char *text, u32 room);
nvml_result nvmlSystemGetCudaDriverVersion_v2(int *version);
nvml_result nvmlSystemGetProcessName(u32 pid, char *name, u32 room);
nvml_result nvmlDeviceGetCount_v2(u32 *count);
nvml_result nvmlDeviceGetHandleByIndex_v2(u32 index, nvmlDevice *device);
nvml_result nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice *device);
nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice *device);
nvml_result nvmlDeviceGetIndex(nvmlDevice device, u32 *index);
nvml_result nvmlDeviceGetName(nvmlDevice device, char *name, u32 room);
nvml_result nvmlDeviceGetUUID(nvmlDevice device, char *uuid, u32 room);
nvml_result nvmlDeviceGetPciInfo_v3(nvmlDevice device, struct nvml_pci *pci);
nvml_result nvmlDeviceGetMinorNumber(nvmlDevice device, u32 *minor);
nvml_result nvmlDeviceGetCudaComputeCapability(nvmlDevice device, int *major, int *minor);
nvml_result nvmlDeviceGetMemoryInfo(nvmlDevice device, struct nvml_memory *memory);
nvml_result nvmlDeviceGetMemoryInfo_v2(nvmlDevice device, struct nvml_memory_v2 *memory);
nvml_result nvmlDeviceGetComputeRunningProcesses(nvmlDevice device, u32 *count, struct nvml_process_v1 *processes);
nvml_result nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice device, u32 *count, struct nvml_process_v2 *processes);
nvml_result nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice device, u32 *count, struct nvml_process_v2 *processes);
nvml_result nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice device, u32 *count, struct nvml_process_v2 *processes);
nvml_result nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice device, u32 *count,
                                                       struct nvml_process_v2 *processes);
nvml_result nvmlDeviceGetRunningProcessDetailList(nvmlDevice device, struct nvml_process_details *list);
nvml_result nvmlDeviceGetProcessUtilization(nvmlDevice device, struct nvml_process_use *uses, u32 *count, u64 since_us);
nvml_result nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice device, struct nvml_process_uses *uses);
nvml_result nvmlDeviceGetUtilizationRates(nvmlDevice device, struct nvml_utilization *rates);
nvml_result nvmlDeviceGetSamples(nvmlDevice device, int kind, u64 since_us, int *type, u32 *count,
                                 struct nvml_sample *samples);
nvml_result nvmlDeviceGetSupportedEventTypes(nvmlDevice device, u64 *types);
nvml_result nvmlDeviceRegisterEvents(nvmlDevice device, u64 types, nvmlEventSet set);
nvml_result nvmlEventSetCreate(nvmlEventSet *set);
nvml_result nvmlEventSetWait_v2(nvmlEventSet set, struct nvml_event *event, u32 wait_ms);
nvml_result nvmlEventSetFree(nvmlEventSet set);
nvml_result nvmlDeviceGetMigMode(nvmlDevice device, u32 *current, u32 *pending);
nvml_result nvmlDeviceIsMigDeviceHandle(nvmlDevice device, u32 *is);
nvml_result nvmlDeviceGetMaxMigDeviceCount(nvmlDevice device, u32 *count);
nvml_result nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice device, u32 index, nvmlDevice *mig);
nvml_result nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice mig, nvmlDevice *device);
nvml_result nvmlDeviceGetGpuInstanceId(nvmlDevice device, u32 *id);
nvml_result nvmlDeviceGetComputeInstanceId(nvmlDevice device, u32 *id);
nvml_result nvmlDeviceGetGpuInstanceById(nvmlDevice device, u32 id, nvmlGpuInstance *instance);
nvml_result nvmlDeviceGetAttributes_v2(nvmlDevice device, struct nvml_attributes *attributes);
nvml_result nvmlDeviceGetTemperature(nvmlDevice device, int sensor, u32 *celsius);
nvml_result nvmlDeviceGetClockInfo(nvmlDevice device, int kind, u32 *mhz);
