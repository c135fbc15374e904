/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/cupti_library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_bridge/cupti_places.h"
#include "cupti_bridge/ring.h"

#define MAX_MAPPED 16

/* CUDA libraries that this process has mapped. */
struct mapped_library {
	char path[CUPTI_LIBRARY_PATH];
	uint32_t major; /* of the CUDA version in its name, 0 none */
	bool is_cupti;
};

struct mapped_libraries {
	struct mapped_library items[MAX_MAPPED];
	size_t count;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* strtoul would need a new C library where this is built with one. */
static uint32_t leading_number(const char *text)
{
	uint32_t number = 0;

	while (*text >= '0' && *text <= '9' && number < 1000)
		number = number * 10 + (uint32_t)(*text++ - '0');
	return number;
}

/* Remembers CUPTI itself and the libraries beside which it ships. */
static int note_mapped(struct dl_phdr_info *info, size_t size, void *context)
{
	static const char *const prefixes[] = {"libcupti.so", "libcudart.so", "libcublas.so", "libnvrtc.so"};
	struct mapped_libraries *mapped = context;
	const char *name = info->dlpi_name ? base_name(info->dlpi_name) : "";

	(void)size;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t length = strlen(prefixes[i]);
		struct mapped_library *item = &mapped->items[mapped->count];

		if (strncmp(name, prefixes[i], length) || strlen(info->dlpi_name) >= sizeof(item->path))
			continue;
		memcpy(item->path, info->dlpi_name, strlen(info->dlpi_name) + 1);
		item->major = name[length] == '.' ? leading_number(name + length + 1) : 0;
		item->is_cupti = i == 0;
		return ++mapped->count == MAX_MAPPED;
	}
	return 0;
}

uint32_t cupti_library_major(uint32_t version)
{
	if (version >= 130000)
		return version / 10000;
	if (version >= 19) /* CUDA 12.0 */
		return 12;
	return version >= 13 ? 11 : 10;
}

void cuda_driver_find(struct cuda_driver *driver)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	int (*get_version)(int *version);
	int version = 0;

	memset(driver, 0, sizeof(*driver));
	if (!handle)
		return;
	get_version = (int (*)(int *))dlsym(handle, "cuDriverGetVersion");
	if (get_version && get_version(&version) == 0 && version > 0)
		driver->version = (uint32_t)version;
	driver->simulated = dlsym(handle, "whyidle_simulated_gpu") != NULL;
	dlclose(handle); /* RTLD_NOLOAD counted it once more; it stays */
}

bool cuda_driver_is_initialised(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	int (*get_count)(int *count), count = 0;
	bool initialised;

	if (!handle)
		return false;
	get_count = (int (*)(int *))dlsym(handle, "cuDeviceGetCount");
	initialised = get_count && get_count(&count) == 0 && count > 0;
	dlclose(handle);
	return initialised;
}

/* Looks the functions up in this very copy: the program may have another one in its global scope. */
static bool bind_functions(struct cupti_library *library)
{
	struct cupti_functions *call = &library->call;

	memset(call, 0, sizeof(*call));
#define BIND(name, parameters) call->name = (cupti_abi_##name)dlsym(library->handle, #name);
	CUPTI_ABI_REQUIRED_FUNCTIONS(BIND)
	CUPTI_ABI_OPTIONAL_FUNCTIONS(BIND)
#undef BIND
#define CHECK(name, parameters) &&call->name
	return true CUPTI_ABI_REQUIRED_FUNCTIONS(CHECK);
#undef CHECK
}

static void store_path(struct cupti_library *library, const char *asked)
{
	struct link_map *map = NULL;
	const char *path = asked;

	if (dlinfo(library->handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name)
		path = map->l_name;
	snprintf(library->path, sizeof(library->path), "%s", path);
}

/* A copy that will not even tell its version is taken as well: it is the right one, and says what is wrong.
 */
static bool is_suitable(struct cupti_library *library, uint32_t wanted)
{
	if (!bind_functions(library))
		return false;
	library->error = library->call.cuptiGetVersion(&library->version);
	if (library->error != CUPTI_ABI_SUCCESS) {
		library->version = 0;
		return true;
	}
	return library->version >= CUPTI_ABI_VERSION_MIN &&
	       (!wanted || cupti_library_major(library->version) == wanted);
}

/* Opens one candidate. wanted: CUDA major version that it must have, 0 any. */
static bool try_open(struct cupti_library *library, const char *path, int flags, uint32_t wanted)
{
	library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
	if (!library->handle)
		return false;
	if (is_suitable(library, wanted)) {
		store_path(library, path);
		return true;
	}
	dlclose(library->handle);
	memset(library, 0, sizeof(*library));
	return false;
}

/* The sonames that a major version of CUDA used, best first. */
static bool try_names(struct cupti_library *library, const char *folder, uint32_t major)
{
	static const char *const names_11[] = {"libcupti.so.11.8", "libcupti.so.11.7", "libcupti.so.11.6",
	                                       "libcupti.so.11.5", "libcupti.so.11.4", "libcupti.so.11.3",
	                                       "libcupti.so.11.2", "libcupti.so.11.1"};
	char path[CUPTI_LIBRARY_PATH + 64];

	for (size_t i = 0; major == 11 && i < sizeof(names_11) / sizeof(names_11[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", folder, names_11[i]);
		if (try_open(library, path, 0, major))
			return true;
	}
	snprintf(path, sizeof(path), "%slibcupti.so.%u", folder, major);
	return try_open(library, path, 0, major);
}

/* Beside a CUDA library: the same folder, or the one that the toolkit or NVIDIA's wheels keep CUPTI in. */
static bool try_beside(struct cupti_library *library, const char *path, uint32_t major)
{
	static const char *const places[] = CUPTI_PLACES_BESIDE;
	char folder[CUPTI_LIBRARY_PATH + 64];
	int length = (int)(base_name(path) - path);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(folder, sizeof(folder), "%.*s%s", length, path, places[i]);
		if (try_names(library, folder, major))
			return true;
	}
	return false;
}

static bool try_usual(struct cupti_library *library, uint32_t major)
{
	static const char *const folders[] = CUPTI_PLACES_ELSE;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (try_names(library, folders[i], major))
			return true;
	return false;
}

/* CUDA major version of the program's runtime, 0 if that is linked statically. */
static uint32_t runtime_major(const struct mapped_libraries *mapped)
{
	for (size_t i = 0; i < mapped->count; i++)
		if (!mapped->items[i].is_cupti && mapped->items[i].major)
			return mapped->items[i].major;
	return 0;
}

static bool try_mapped(struct cupti_library *library, const struct mapped_libraries *mapped)
{
	for (size_t i = 0; i < mapped->count; i++)
		if (mapped->items[i].is_cupti && try_open(library, mapped->items[i].path, RTLD_NOLOAD, 0))
			return true;
	return false;
}

static bool try_all(struct cupti_library *library, const struct mapped_libraries *mapped, uint32_t major)
{
	for (size_t i = 0; i < mapped->count; i++)
		if (!mapped->items[i].is_cupti && try_beside(library, mapped->items[i].path, major))
			return true;
	return try_usual(library, major);
}

bool cupti_library_open(struct cupti_library *library, const struct cuda_driver *driver, char *text,
                        size_t size)
{
	const char *forced = secure_getenv(RING_CUPTI_ENV);
	struct mapped_libraries mapped = {0};
	uint32_t newest, oldest;

	memset(library, 0, sizeof(*library));
	if (forced && *forced) {
		if (try_open(library, forced, 0, 0))
			return true;
		snprintf(text, size,
		         RING_CUPTI_ENV "=%.200s is not a usable CUPTI: unset it or name a libcupti.so",
		         forced);
		return false;
	}
	dl_iterate_phdr(note_mapped, &mapped);
	if (try_mapped(library, &mapped))
		return true;
	/*
	 * CUPTI must be of the same major version as the runtime, whose calls it traces. Without a runtime
	 * library (linked statically, or none) any version that the driver supports will do, the newest
	 * first.
	 */
	newest = oldest = runtime_major(&mapped);
	if (!newest) {
		newest = driver->version ? driver->version / 1000 : 13;
		oldest = CUPTI_MAJOR_OLDEST;
	}
	for (uint32_t major = newest; major >= oldest; major--)
		if (try_all(library, &mapped, major))
			return true;
	snprintf(text, size,
	         "no CUPTI for CUDA %u was found: install it (pip install nvidia-cuda-cupti, or the package "
	         "cuda-cupti), or set " RING_CUPTI_ENV " to the path of libcupti.so",
	         newest);
	return false;
}
