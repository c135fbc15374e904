// SPDX-License-Identifier: GPL-2.0-only
/* Names that were not known where a session was recorded, from files that are here. */
#include <errno.h>
#include <string.h>

#include "model/model.h"
#include "symbols/symbol_folder.h"

static int add_text(struct model *model, const char *text, size_t length, uint32_t *id)
{
	*id = model_add_string(model, text, length);
	return *id == MODEL_NONE ? -ENOMEM : 0;
}

static int resolve(struct model *model, struct symbol_folder *folder, struct symbol *symbol,
                   uint64_t *functions)
{
	const char *build_id = model_string(model, symbol->build_id), *name, *file;
	struct binary *binary;
	uint32_t at = 0;
	int line, err = 0;

	while (!err && (!symbol->name || !symbol->file) &&
	       (binary = symbol_folder_find(folder, build_id, &at))) {
		name = symbol->name ? NULL : binary_function(binary, symbol->module_address);
		/* The version that a symbol table may append to a name is no part of it. */
		if (name)
			err = add_text(model, name, strcspn(name, "@"), &symbol->name);
		*functions += name && !err;
		if (!err && !symbol->file && binary_line(binary, symbol->module_address, &file, &line)) {
			err = add_text(model, file, strlen(file), &symbol->file);
			symbol->line = line > 0 ? line : 0;
		}
	}
	return err;
}

int model_resolve(struct model *model, const char *folder, bool whole, uint64_t *functions,
                  struct error *error)
{
	struct symbol_folder *files;
	struct symbol *symbol;
	int err = symbol_folder_open(&files, folder, whole, error);

	*functions = 0;
	if (err)
		return err;
	array_for_each (symbol, &model->symbols) {
		if (!err && symbol->build_id && symbol->module_address)
			err = resolve(model, files, symbol, functions);
	}
	symbol_folder_close(files);
	if (!err && *functions)
		err = model_name_stacks(model);
	return err == -ENOMEM ? error_no_memory(error) : err;
}
