// SPDX-License-Identifier: GPL-2.0-only
#include "collect/doctor_cuda.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collect/pure_doctor_report.h"

#define MAX_COPIES 16

/* ---- driver and GPUs ---- */

static bool first_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool got;

	if (!file)
		return false;
	got = fgets(line, size, file) != NULL;
	fclose(file);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

static void check_driver(struct doctor_report *report)
{
	struct doctor_check *check;
	char line[256];

	if (first_line("/proc/driver/nvidia/version", line, sizeof(line))) {
		doctor_add(report, "nvidia_driver", DOCTOR_OK, "%s", line);
		return;
	}
	check = doctor_add(report, "nvidia_driver", DOCTOR_MISSING,
	                   "no NVIDIA kernel driver (/proc/driver/nvidia)");
	doctor_fix(
	    check,
	    "on a machine with an NVIDIA GPU install its driver; in a container start it with GPU access");
}

static bool read_model(const char *information, char *model, size_t size)
{
	FILE *file = fopen(information, "re");
	bool found = false;
	char line[256];

	while (file && !found && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "Model:", 6))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(model, size, "%s", line + 6 + strspn(line + 6, " \t"));
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

static void check_gpus(struct doctor_report *report)
{
	char model[256], pattern[] = "/proc/driver/nvidia/gpus/*/information";
	glob_t found = {0};

	if (glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++) {
			if (read_model(found.gl_pathv[i], model, sizeof(model)))
				doctor_add(report, "gpu", DOCTOR_OK, "%s", model);
		}
	}
	globfree(&found);
}

static void check_libcuda(struct doctor_report *report)
{
	struct doctor_check *check;
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	int (*version)(int *) = library ? (int (*)(int *))dlsym(library, "cuDriverGetVersion") : NULL;
	int number = 0;

	if (!library) {
		check =
		    doctor_add(report, "libcuda", DOCTOR_MISSING, "libcuda.so.1 is not found by the loader");
		doctor_fix(check, "it comes with the NVIDIA driver; in a container start it with GPU access");
		return;
	}
	if (version && version(&number) == 0 && number > 0)
		doctor_add(report, "libcuda", DOCTOR_OK, "libcuda.so.1, CUDA %d.%d", number / 1000,
		           number % 1000 / 10);
	else
		doctor_add(report, "libcuda", DOCTOR_OK, "libcuda.so.1");
	dlclose(library);
}

/* ---- copies of CUPTI ---- */

struct copies {
	char *paths[MAX_COPIES];
	dev_t devices[MAX_COPIES];
	ino_t inodes[MAX_COPIES];
	size_t count;
};

/* Adds a file unless the same one is there under another name. */
static void add_copy(struct copies *copies, const char *path)
{
	struct stat info;
	char *real;

	if (copies->count == MAX_COPIES || stat(path, &info) < 0 || !S_ISREG(info.st_mode))
		return;
	for (size_t i = 0; i < copies->count; i++) {
		if (copies->devices[i] == info.st_dev && copies->inodes[i] == info.st_ino)
			return;
	}
	real = realpath(path, NULL);
	if (!real)
		return;
	copies->paths[copies->count] = real;
	copies->devices[copies->count] = info.st_dev;
	copies->inodes[copies->count] = info.st_ino;
	copies->count++;
}

static void add_pattern(struct copies *copies, const char *pattern)
{
	glob_t found = {0};

	if (glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			add_copy(copies, found.gl_pathv[i]);
	}
	globfree(&found);
}

/* Below a Python prefix: the wheels of NVIDIA and triton. */
static void add_prefix(struct copies *copies, const char *prefix)
{
	static const char *const places[] = {
	    "lib/python3*/*-packages/nvidia/*/lib/libcupti.so*",
	    "lib/python3*/*-packages/nvidia/*/*/lib/libcupti.so*",
	    "lib/python3*/*-packages/triton/backends/nvidia/lib/cupti/libcupti.so*",
	    "lib/libcupti.so*",
	};
	char pattern[1024];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (snprintf(pattern, sizeof(pattern), "%s/%s", prefix, places[i]) < (int)sizeof(pattern))
			add_pattern(copies, pattern);
	}
}

static void find_copies(struct copies *copies)
{
	static const char *const toolkit[] = {
	    "/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*",
	    "/usr/local/cuda*/targets/*/lib/libcupti.so*",
	    "/usr/local/cuda*/lib64/libcupti.so*",
	    "/usr/lib/*-linux-gnu/libcupti.so*",
	    "/usr/lib64/libcupti.so*",
	};
	static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX", NULL};
	static const char *const prefixes[] = {"/usr", "/usr/local", "/opt/conda", "/opt/venv"};
	char local[512];

	for (size_t i = 0; variables[i]; i++) {
		if (getenv(variables[i]))
			add_prefix(copies, getenv(variables[i]));
	}
	if (getenv("HOME") &&
	    snprintf(local, sizeof(local), "%s/.local", getenv("HOME")) < (int)sizeof(local))
		add_prefix(copies, local);
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		add_prefix(copies, prefixes[i]);
	for (size_t i = 0; i < sizeof(toolkit) / sizeof(toolkit[0]); i++)
		add_pattern(copies, toolkit[i]);
}

static void check_cupti(struct doctor_report *report)
{
	const char *chosen = getenv("WHYIDLE_CUPTI");
	struct copies copies = {0};
	struct doctor_check *check;

	if (chosen)
		add_copy(&copies, chosen);
	find_copies(&copies);
	for (size_t i = 0; i < copies.count; i++) {
		doctor_add(report, "cupti", DOCTOR_OK, "%s", copies.paths[i]);
		free(copies.paths[i]);
	}
	if (copies.count)
		return;
	check = doctor_add(report, "cupti", DOCTOR_DEGRADED,
	                   "no libcupti in the usual places; a program may still bring its own");
	doctor_fix(check, "it comes with PyTorch's CUDA wheels and with the CUDA Toolkit; WHYIDLE_CUPTI "
	                  "names another copy");
}

static void check_injection(struct doctor_report *report)
{
	const char *value = getenv("CUDA_INJECTION64_PATH");
	struct doctor_check *check;

	if (!value || !*value)
		return;
	check = doctor_add(report, "injection", DOCTOR_DEGRADED,
	                   "CUDA_INJECTION64_PATH is set (%s): another tool is loaded", value);
	doctor_fix(check, "unset it for a recording with a GPU timeline");
}

void doctor_check_cuda(struct doctor_report *report)
{
	check_driver(report);
	check_gpus(report);
	check_libcuda(report);
	check_cupti(report);
	check_injection(report);
}
