/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/devices.h"

#include <dlfcn.h>
#include <string.h>

#include "cupti_bridge/clock.h"

#define MAX_DEVICES 256

/* cuda.h: CUdevice_attribute */
enum {
	ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	ATTRIBUTE_COMPUTE_MAJOR = 75,
	ATTRIBUTE_COMPUTE_MINOR = 76,
};

struct driver_calls {
	int (*get_count)(int *count);
	int (*get)(int *device, int ordinal);
	int (*get_name)(char *name, int length, int device);
	int (*get_uuid)(uint8_t uuid[16], int device);
	int (*get_memory)(size_t *bytes, int device);
	int (*get_attribute)(int *value, int attribute, int device);
};

static bool find_calls(void *handle, struct driver_calls *calls)
{
	calls->get_count = (int (*)(int *))dlsym(handle, "cuDeviceGetCount");
	calls->get = (int (*)(int *, int))dlsym(handle, "cuDeviceGet");
	calls->get_name = (int (*)(char *, int, int))dlsym(handle, "cuDeviceGetName");
	/* The first version gives the UUID of the GPU also where the process sees a slice of it (MIG). */
	calls->get_uuid = (int (*)(uint8_t[16], int))dlsym(handle, "cuDeviceGetUuid_v2");
	if (!calls->get_uuid)
		calls->get_uuid = (int (*)(uint8_t[16], int))dlsym(handle, "cuDeviceGetUuid");
	calls->get_memory = (int (*)(size_t *, int))dlsym(handle, "cuDeviceTotalMem_v2");
	calls->get_attribute = (int (*)(int *, int, int))dlsym(handle, "cuDeviceGetAttribute");
	return calls->get_count && calls->get && calls->get_name && calls->get_uuid && calls->get_memory &&
	       calls->get_attribute;
}

static uint32_t attribute(const struct driver_calls *calls, int which, int device)
{
	int value = 0;

	return calls->get_attribute(&value, which, device) == 0 && value > 0 ? (uint32_t)value : 0;
}

static void announce(struct bridge *bridge, const struct driver_calls *calls, int ordinal)
{
	struct ring_device record = {.record = {.size = sizeof(record), .type = RING_DEVICE}};
	uint64_t now_ns = clock_monotonic_ns();
	char name[256] = "";
	size_t bytes = 0;
	int device;

	if (calls->get(&device, ordinal) != 0 || calls->get_uuid(record.uuid, device) != 0)
		return;
	if (calls->get_name(name, sizeof(name) - 1, device) == 0)
		record.name = name_table_id(bridge->names, name);
	if (calls->get_memory(&bytes, device) == 0)
		record.memory_bytes = bytes;
	record.device = (uint32_t)ordinal;
	record.sm_count = attribute(calls, ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	record.compute_major = attribute(calls, ATTRIBUTE_COMPUTE_MAJOR, device);
	record.compute_minor = attribute(calls, ATTRIBUTE_COMPUTE_MINOR, device);
	ring_writer_put(&bridge->ring, &record.record, now_ns, now_ns);
}

void devices_announce(struct bridge *bridge)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	struct driver_calls calls;
	int count = 0;

	if (!handle)
		return;
	if (find_calls(handle, &calls) && calls.get_count(&count) == 0)
		for (int i = 0; i < count && i < MAX_DEVICES; i++)
			announce(bridge, &calls, i);
	dlclose(handle);
}
