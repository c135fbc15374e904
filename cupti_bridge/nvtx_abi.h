/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of NVTX's binary interface that the bridge uses, from nvToolsExt.h and nvtxDetail/nvtxTypes.h of
 * NVTX 3; `make check-abi` compares them. A program's NVTX, which is compiled into it, loads the library
 * named in NVTX_INJECTION64_PATH at its first call and asks its InitializeInjectionNvtx2 to fill in a table
 * of functions. What is left alone does nothing.
 */
#ifndef WHYIDLE_CUPTI_NVTX_ABI_H
#define WHYIDLE_CUPTI_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum {
	NVTX_ABI_TABLE_CALLBACKS = 1, /* NvtxExportTableID */
	NVTX_ABI_MODULE_CORE = 1,     /* NvtxCallbackModule */
	NVTX_ABI_MODULE_CORE2 = 5,
	NVTX_ABI_MESSAGE_ASCII = 1, /* nvtxMessageType_t */
	NVTX_ABI_MESSAGE_WIDE = 2,
	NVTX_ABI_MESSAGE_REGISTERED = 3,
	NVTX_ABI_NO_TRACKING = -2, /* NVTX_NO_PUSH_POP_TRACKING */
};

enum nvtx_abi_core {
	NVTX_ABI_RANGE_START_EX = 4,
	NVTX_ABI_RANGE_START_A = 5,
	NVTX_ABI_RANGE_START_W = 6,
	NVTX_ABI_RANGE_END = 7,
	NVTX_ABI_RANGE_PUSH_EX = 8,
	NVTX_ABI_RANGE_PUSH_A = 9,
	NVTX_ABI_RANGE_PUSH_W = 10,
	NVTX_ABI_RANGE_POP = 11,
};

enum nvtx_abi_core2 {
	NVTX_ABI_DOMAIN_RANGE_START_EX = 2,
	NVTX_ABI_DOMAIN_RANGE_END = 3,
	NVTX_ABI_DOMAIN_RANGE_PUSH_EX = 4,
	NVTX_ABI_DOMAIN_RANGE_POP = 5,
	NVTX_ABI_DOMAIN_REGISTER_STRING_A = 10,
	NVTX_ABI_DOMAIN_REGISTER_STRING_W = 11,
	NVTX_ABI_DOMAIN_CREATE_A = 12,
	NVTX_ABI_DOMAIN_CREATE_W = 13,
};

/* nvtxEventAttributes_v2; later versions only grow, and say so in `size`. */
struct nvtx_abi_event {
	uint16_t version, size;
	uint32_t category;
	int32_t colour_type;
	uint32_t colour;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *wide;
		const void *registered; /* what DomainRegisterString returned */
	} message;
};

typedef void (*nvtx_abi_function)(void);

/* NvtxExportTableCallbacks */
struct nvtx_abi_callbacks {
	size_t struct_size;
	/* 1 and a table whose entry i points to where the function of callback id i is kept, or 0. */
	int (*get_table)(int module, nvtx_abi_function ***table, unsigned int *size);
};

typedef const void *(*nvtx_abi_get_export_table)(uint32_t id);

#endif
