/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stand-in for the NVTX that a program has compiled into it: loads NVTX_INJECTION64_PATH at the first call,
 * offers its table of functions and calls what was filled in, as NVTX 3 does. With -DREAL_NVTX it is NVIDIA's
 * own header, which does the same. Include it in one file of a program.
 */
#ifndef WHYIDLE_SIM_NVTX_CLIENT_H
#define WHYIDLE_SIM_NVTX_CLIENT_H

#ifdef REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#else
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "cupti_bridge/nvtx_abi.h"

#define NVTX_VERSION                  3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(struct nvtx_abi_event))
#define NVTX_MESSAGE_TYPE_ASCII       NVTX_ABI_MESSAGE_ASCII
#define NVTX_MESSAGE_TYPE_REGISTERED  NVTX_ABI_MESSAGE_REGISTERED

typedef const void *nvtxDomainHandle_t;
typedef const void *nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;
typedef struct {
	uint16_t version, size;
	uint32_t category;
	int32_t colorType;
	uint32_t color;
	int32_t payloadType, reserved0;
	uint64_t payload;
	int32_t messageType;
	union {
		const char *ascii;
		const wchar_t *unicode;
		nvtxStringHandle_t registered;
	} message;
} nvtxEventAttributes_t;

#define NVTX_CORE_SIZE  16
#define NVTX_CORE2_SIZE 16

static nvtx_abi_function nvtx_core[NVTX_CORE_SIZE], nvtx_core2[NVTX_CORE2_SIZE];

static int nvtx_get_table(int module, nvtx_abi_function ***table, unsigned int *size)
{
	static nvtx_abi_function *core[NVTX_CORE_SIZE], *core2[NVTX_CORE2_SIZE];

	for (int i = 1; i < NVTX_CORE_SIZE; i++) {
		core[i] = &nvtx_core[i];
		core2[i] = &nvtx_core2[i];
	}
	if (module != NVTX_ABI_MODULE_CORE && module != NVTX_ABI_MODULE_CORE2)
		return 0;
	*table = module == NVTX_ABI_MODULE_CORE ? core : core2;
	*size = NVTX_CORE_SIZE;
	return 1;
}

static const void *nvtx_export_table(uint32_t id)
{
	static const struct nvtx_abi_callbacks callbacks = {sizeof(callbacks), nvtx_get_table};

	return id == NVTX_ABI_TABLE_CALLBACKS ? &callbacks : NULL;
}

static void nvtx_load(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*initialize)(nvtx_abi_get_export_table) = NULL;

	if (library)
		*(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
	if (initialize && !initialize(nvtx_export_table))
		dlclose(library);
}

static nvtx_abi_function nvtx_function(nvtx_abi_function *table, int id)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, nvtx_load);
	return table[id];
}

/* A call of the function with that id, or `otherwise` where nobody filled it in. */
#define NVTX_CALL(table, id, type, otherwise, parameters, ...)                                               \
	nvtx_abi_function function = nvtx_function(table, id);                                               \
	return function ? ((type(*) parameters)function)(__VA_ARGS__) : (otherwise)

static inline int nvtxRangePushA(const char *text)
{
	NVTX_CALL(nvtx_core, NVTX_ABI_RANGE_PUSH_A, int, -2, (const char *), text);
}

static inline int nvtxRangePushW(const wchar_t *text)
{
	NVTX_CALL(nvtx_core, NVTX_ABI_RANGE_PUSH_W, int, -2, (const wchar_t *), text);
}

static inline int nvtxRangePushEx(const nvtxEventAttributes_t *event)
{
	NVTX_CALL(nvtx_core, NVTX_ABI_RANGE_PUSH_EX, int, -2, (const nvtxEventAttributes_t *), event);
}

static inline int nvtxRangePop(void)
{
	NVTX_CALL(nvtx_core, NVTX_ABI_RANGE_POP, int, -2, (void));
}

static inline nvtxRangeId_t nvtxRangeStartA(const char *text)
{
	NVTX_CALL(nvtx_core, NVTX_ABI_RANGE_START_A, nvtxRangeId_t, 0, (const char *), text);
}

static inline void nvtxRangeEnd(nvtxRangeId_t id)
{
	NVTX_CALL(nvtx_core, NVTX_ABI_RANGE_END, void, (void)0, (nvtxRangeId_t), id);
}

static inline nvtxDomainHandle_t nvtxDomainCreateA(const char *name)
{
	NVTX_CALL(nvtx_core2, NVTX_ABI_DOMAIN_CREATE_A, nvtxDomainHandle_t, NULL, (const char *), name);
}

static inline nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t domain, const char *text)
{
	NVTX_CALL(nvtx_core2, NVTX_ABI_DOMAIN_REGISTER_STRING_A, nvtxStringHandle_t, NULL,
	          (nvtxDomainHandle_t, const char *), domain, text);
}

static inline int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
	NVTX_CALL(nvtx_core2, NVTX_ABI_DOMAIN_RANGE_PUSH_EX, int, -2,
	          (nvtxDomainHandle_t, const nvtxEventAttributes_t *), domain, event);
}

static inline int nvtxDomainRangePop(nvtxDomainHandle_t domain)
{
	NVTX_CALL(nvtx_core2, NVTX_ABI_DOMAIN_RANGE_POP, int, -2, (nvtxDomainHandle_t), domain);
}
#endif

#endif
