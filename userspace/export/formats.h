/* SPDX-License-Identifier: GPL-2.0-only */
/* The one list of formats that the command line offers. */
#ifndef WHYIDLE_EXPORT_FORMATS_H
#define WHYIDLE_EXPORT_FORMATS_H

#include "export/export.h"

/* X(enumerator, name, ending of a file's name, what it is for, writer) */
#define EXPORT_FORMATS(X)                                                                                    \
	X(CHROME, "chrome", ".trace.json", "Chrome JSON as PyTorch's profiler writes it: Perfetto, HTA",     \
	  export_chrome)                                                                                     \
	X(SQLITE, "sqlite", ".sqlite", "SQLite with the tables of Nsight Systems: SQL, scripts for nsys",    \
	  export_sqlite)                                                                                     \
	X(PERFETTO, "perfetto", ".pftrace", "Perfetto's own format: states, causes, arrows, counters",       \
	  export_perfetto)                                                                                   \
	X(PPROF, "pprof", ".pb.gz", "profile for pprof: idle, GPU and off-CPU time by stack", export_pprof)  \
	X(FOLDED, "folded", ".folded", "the same as folded stacks: FlameGraph, speedscope", export_folded)

enum export_format {
#define EXPORT_FORMAT_ENUM(enumerator, name, ending, purpose, writer) EXPORT_##enumerator,
	EXPORT_FORMATS(EXPORT_FORMAT_ENUM)
#undef EXPORT_FORMAT_ENUM
	    EXPORT_FORMAT_COUNT
};

struct export_format_spec {
	const char *name, *ending, *purpose;
	int (*write)(const char *path, const struct model *model, const struct analysis *analysis,
	             struct error *error);
};

extern const struct export_format_spec export_formats[EXPORT_FORMAT_COUNT];

/*
 * Name for the export of `input` where the user gives none: beside it, with the format's ending in place of
 * its own. The caller frees it; NULL if memory ran out.
 */
char *export_default_path(const char *input, enum export_format format);

#endif
