/* The functions that cases call, as programs see them. They are looked up by name: nothing is linked. */
#pragma once

#include "../common/words.h"
#include "driver/cuda_abi.h"
#include "driver/nvml_abi.h"

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult code, const char **name);
CUresult cuGetErrorString(CUresult code, const char **text);
CUresult cuGetProcAddress(const char *name, void **address, int version, u64 flags);
CUresult cuGetProcAddress_v2(const char *name, void **address, int version, u64 flags, int *status);

CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int room, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *text, int room, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value);
CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags);

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxGetFlags(unsigned *flags);
CUresult cuCtxGetLimit(size_t *value, int limit);
CUresult cuCtxSetLimit(int limit, size_t value);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version);
CUresult cuCtxSynchronize(void);

CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name);
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra);
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn call, void *data);

CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamGetFlags(CUstream stream, unsigned *flags);
CUresult cuStreamGetPriority(CUstream stream, int *priority);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback call, void *data, unsigned flags);
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);

CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventQuery(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecord_ptsz(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to);

CUresult cuGraphCreate(CUgraph *graph, unsigned flags);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphClone(CUgraph *clone, CUgraph graph);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphNodeGetType(CUgraphNode node, int *type);
CUresult cuGraphNodeFindInClone(CUgraphNode *found, CUgraphNode node, CUgraph clone);
CUresult cuGraphDestroyNode(CUgraphNode node);
CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count);
CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                            const CUDA_HOST_NODE_PARAMS *params);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *params);
CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context);
CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                  CUgraph child);
CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                   CUevent event);
CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                 CUevent event);
CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS *params);
CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                               CUdeviceptr address);
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, u64 flags);
CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo *result);
CUresult cuGraphExecDestroy(CUgraphExec executable);
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream);

CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr address);
CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address);
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void *address);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned flags);
CUresult cuMemHostGetFlags(unsigned *flags, void *host);
CUresult cuMemHostRegister_v2(void *host, size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void *host);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count);
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count);
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties, int option);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                     u64 flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address);
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted, u64 flags);
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes);
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, u64 flags);
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count);
CUresult cuMemGetAccess(u64 *flags, const CUmemLocation *location, CUdeviceptr address);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr address);
CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *like);
CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *like);
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *told, CUarray array);
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *told, CUarray array, CUdevice device);
CUresult cuArrayDestroy(CUarray array);

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
