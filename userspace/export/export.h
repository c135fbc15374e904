/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sessions and imported traces in the formats of other tools.
 *
 * Each writer gets a finished model (and, where it shows causes, its analysis) and writes one file. Returns 0
 * or a negative errno with `error`; a file that could not be written whole is removed. Names come from a
 * target: they are escaped for the format.
 */
#ifndef WHYIDLE_EXPORT_H
#define WHYIDLE_EXPORT_H

#include "attribute/analysis.h"
#include "model/model.h"

/* Chrome JSON as Kineto writes it, so that HTA, Perfetto and import_kineto read it; ".gz" names are
 * compressed. */
int export_chrome(const char *path, const struct model *model, const struct analysis *analysis,
                  struct error *error);

/* SQLite with the tables and columns of Nsight Systems' export (schema 3.x) that hold what a model has. */
int export_sqlite(const char *path, const struct model *model, const struct analysis *analysis,
                  struct error *error);

/* Perfetto's own format, a protobuf trace; ".gz" names are compressed. */
int export_perfetto(const char *path, const struct model *model, const struct analysis *analysis,
                    struct error *error);

/* A profile.proto for pprof, always compressed: idle time by cause and stack, GPU time by launch stack, time
 * off the CPU. */
int export_pprof(const char *path, const struct model *model, const struct analysis *analysis,
                 struct error *error);

/* The same as folded stacks, a line each. */
int export_folded(const char *path, const struct model *model, const struct analysis *analysis,
                  struct error *error);

#endif
