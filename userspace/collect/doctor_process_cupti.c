// SPDX-License-Identifier: GPL-2.0-only
#include "collect/doctor_process_cupti.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/pure_environment.h"
#include "cupti_bridge/cupti_places.h"

#define ENVIRONMENT_BYTES (256 << 10)
#define MAJOR_NEWEST      13 /* that is known; a runtime of a newer one says so itself */

/* ---- what it was started with ---- */

/* Its environment when it was started; empty if it cannot be read. */
static void read_environment(uint32_t pid, struct environment *environment)
{
	char path[64], *text = malloc(ENVIRONMENT_BYTES);
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/environ", pid);
	file = text ? fopen(path, "re") : NULL;
	if (file) {
		environment_parse(environment, text, fread(text, 1, ENVIRONMENT_BYTES, file));
		fclose(file);
	}
	free(text);
}

/* ---- copies that are mapped ---- */

struct mapped_tools {
	char cupti[512]; /* path of libcupti, "" none */
	char tool[512];  /* path of a library that a known profiler puts into programs, "" none */
};

static void note_line(struct mapped_tools *tools, const char *path)
{
	static const char *const injected[] = {"libToolsInjection", "libcuda-injection",
	                                       "libInterceptorInjection", "libparcagpucupti",
	                                       "libcuptiprofiler"};
	const char *name = strrchr(path, '/') + 1;

	if (!tools->cupti[0] && !strncmp(name, "libcupti.so", strlen("libcupti.so")))
		snprintf(tools->cupti, sizeof(tools->cupti), "%s", path);
	for (size_t i = 0; !tools->tool[0] && i < sizeof(injected) / sizeof(injected[0]); i++) {
		if (!strncmp(name, injected[i], strlen(injected[i])))
			snprintf(tools->tool, sizeof(tools->tool), "%s", path);
	}
}

static void find_mapped(uint32_t pid, struct mapped_tools *tools)
{
	char path[64], *line = NULL, *name;
	size_t size = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	while (maps && getline(&line, &size, maps) > 0) {
		line[strcspn(line, "\n")] = '\0';
		name = strchr(line, '/');
		if (name)
			note_line(tools, name);
	}
	free(line);
	if (maps)
		fclose(maps);
}

/* ---- copies that could be loaded ---- */

/* CUDA major version in the name of the runtime ("libcudart.so.13"), 0: there is none. */
static unsigned int runtime_major(const struct cuda_library *libraries, size_t count)
{
	unsigned int major;

	for (size_t i = 0; i < count; i++) {
		if (!libraries[i].driver && sscanf(libraries[i].name, "libcudart.so.%u", &major) == 1)
			return major;
	}
	return 0;
}

/* Finds libcupti of a major version in a folder of the process's view. `found` is its path there. */
static bool find_in(uint32_t pid, const char *folder, unsigned int major, char *found, size_t size)
{
	char pattern[1200], root[32];
	glob_t matches = {0};
	bool any = false;

	snprintf(root, sizeof(root), "/proc/%u/root", pid);
	if (snprintf(pattern, sizeof(pattern), "%s%slibcupti.so.%u*", root, folder, major) <
	        (int)sizeof(pattern) &&
	    !glob(pattern, 0, NULL, &matches) && matches.gl_pathc) {
		snprintf(found, size, "%s", matches.gl_pathv[0] + strlen(root));
		any = true;
	}
	globfree(&matches);
	return any;
}

static bool find_beside(uint32_t pid, const struct cuda_library *library, unsigned int major, char *found,
                        size_t size)
{
	static const char *const places[] = CUPTI_PLACES_BESIDE;
	char root[32], folder[700];
	const char *path, *slash = strrchr(library->path, '/');

	snprintf(root, sizeof(root), "/proc/%u/root/", pid);
	if (library->driver || strncmp(library->path, root, strlen(root)) != 0)
		return false;
	path = library->path + strlen(root) - 1;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(folder, sizeof(folder), "%.*s%s", (int)(slash + 1 - path), path, places[i]);
		if (find_in(pid, folder, major, found, size))
			return true;
	}
	return false;
}

/* Where its loader looks: LD_LIBRARY_PATH and the system's folders (ld.so.cache is not read here). */
static bool find_by_loader(uint32_t pid, const char *library_path, unsigned int major, char *found,
                           size_t size)
{
	static const char *const system[] = {"/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/",
	                                     "/lib64/", "/usr/lib64/", "/usr/local/lib/"};
	char *copy = strdup(library_path ? library_path : ""), *rest = copy, *word, folder[700];
	bool any = false;

	while (!any && copy && (word = strsep(&rest, ":;")) != NULL) {
		if (*word == '/') {
			snprintf(folder, sizeof(folder), "%.600s/", word);
			any = find_in(pid, folder, major, found, size);
		}
	}
	free(copy);
	for (size_t i = 0; !any && i < sizeof(system) / sizeof(system[0]); i++)
		any = find_in(pid, system[i], major, found, size);
	return any;
}

static bool find_copy(uint32_t pid, const struct environment *environment,
                      const struct cuda_library *libraries, size_t count, unsigned int major, char *found,
                      size_t size)
{
	static const char *const folders[] = CUPTI_PLACES_ELSE;

	for (size_t i = 0; i < count; i++) {
		if (find_beside(pid, &libraries[i], major, found, size))
			return true;
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (*folders[i] ? find_in(pid, folders[i], major, found, size)
		                : find_by_loader(pid, environment_get(environment, "LD_LIBRARY_PATH"), major,
		                                 found, size))
			return true;
	}
	return false;
}

static void check_copy(uint32_t pid, struct doctor_report *report, const struct environment *environment,
                       const struct mapped_tools *tools, const struct cuda_library *libraries, size_t count)
{
	unsigned int major = runtime_major(libraries, count), newest = major ? major : MAJOR_NEWEST;
	unsigned int oldest = major ? major : CUPTI_MAJOR_OLDEST;
	const char *chosen = environment_get(environment, "WHYIDLE_CUPTI");
	struct doctor_check *check;
	char found[1200];

	if (chosen && *chosen) {
		doctor_add(report, "process_cupti", DOCTOR_NOTE, "WHYIDLE_CUPTI in it names %s", chosen);
		return;
	}
	if (tools->cupti[0]) {
		doctor_add(report, "process_cupti", DOCTOR_OK, "%s is mapped already and would be used",
		           tools->cupti);
		return;
	}
	for (; newest >= oldest; newest--) {
		if (find_copy(pid, environment, libraries, count, newest, found, sizeof(found))) {
			doctor_add(report, "process_cupti", DOCTOR_OK, "%s fits %s%u and would be loaded",
			           found, major ? "its runtime, CUDA " : "a driver of CUDA ", newest);
			return;
		}
	}
	check =
	    doctor_add(report, "process_cupti", DOCTOR_DEGRADED,
	               major ? "no libcupti for CUDA %u was found in its view of the file system"
	                     : "no libcupti was found in its view of the file system (for CUDA %u or older)",
	               major ? major : MAJOR_NEWEST);
	doctor_fix(check, "pip install nvidia-cuda-cupti, or the package cuda-cupti; without it its GPU "
	                  "timeline is inferred");
}

static void check_user(struct doctor_report *report, const struct environment *environment,
                       const struct mapped_tools *tools)
{
	const char *injected = environment_get(environment, "CUDA_INJECTION64_PATH");
	struct doctor_check *check;

	if (tools->tool[0] || (injected && *injected)) {
		check =
		    doctor_add(report, "cupti_user", DOCTOR_DEGRADED,
		               "another tool is in it (%s): it may hold CUPTI, which has one user a process",
		               tools->tool[0] ? tools->tool : injected);
		doctor_fix(check, "run it without that tool; else its GPU timeline is inferred");
	} else if (tools->cupti[0]) {
		doctor_add(report, "cupti_user", DOCTOR_NOTE,
		           "whether a profiler of its own (torch.profiler) holds CUPTI shows only when it is "
		           "attached");
	} else {
		doctor_add(report, "cupti_user", DOCTOR_OK, "nobody: CUPTI is not loaded in it");
	}
}

void doctor_check_process_cupti(uint32_t pid, struct doctor_report *report,
                                const struct cuda_library *libraries, size_t count)
{
	struct environment environment = {0};
	struct mapped_tools tools = {0};

	read_environment(pid, &environment);
	find_mapped(pid, &tools);
	check_copy(pid, report, &environment, &tools, libraries, count);
	check_user(report, &environment, &tools);
	environment_free(&environment);
}
