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

static int add_source(struct model *model, uint32_t symbol, const struct source_place *place)
{
	uint32_t file = 0;
	int err = place->file ? add_text(model, place->file, strlen(place->file), &file) : 0;

	model->symbols.items[symbol].file = file;
	model->symbols.items[symbol].line = place->line > 0 ? place->line : 0;
	return err;
}

/* Makes a symbol of a function that was inlined into another one. */
static int add_inlined(struct model *model, uint32_t outer, const struct source_place *place, uint32_t *index)
{
	struct symbol symbol = {.address = RECORD_FRAME_INLINED | 1ull << 32 | model->symbols.count,
	                        .module = model->symbols.items[outer].module};
	int err = add_text(model, place->function, strlen(place->function), &symbol.name);

	*index = model->symbols.count;
	err = err ?: model_add_symbol(model, &symbol);
	if (err)
		return err;
	model->symbols.items[outer].inner = symbol.address;
	return add_source(model, *index, place);
}

static int resolve_source(struct model *model, struct binary *binary, uint32_t index)
{
	struct source_place places[SOURCE_PLACES_MAX];
	size_t count = binary_places(binary, model->symbols.items[index].module_address, places);
	int err = count ? add_source(model, index, &places[count - 1]) : 0;

	while (!err && count > 1 && places[count - 2].function)
		err = add_inlined(model, index, &places[--count - 1], &index);
	return err;
}

static int resolve(struct model *model, struct symbol_folder *folder, uint32_t index, uint64_t *functions)
{
	const struct symbol symbol = model->symbols.items[index];
	const char *build_id = model_string(model, symbol.build_id), *name;
	bool named = symbol.name, placed = symbol.file;
	struct binary *binary;
	uint32_t at = 0;
	int err = 0;

	while (!err && (!named || !placed) && (binary = symbol_folder_find(folder, build_id, &at))) {
		name = named ? NULL : binary_function(binary, symbol.module_address);
		/* The version that a symbol table may append to a name is no part of it. */
		if (name)
			err = add_text(model, name, strcspn(name, "@"), &model->symbols.items[index].name);
		*functions += name && !err;
		named = named || name;
		if (!err && !placed)
			err = resolve_source(model, binary, index);
		placed = model->symbols.items[index].file;
	}
	return err;
}

int model_resolve(struct model *model, const char *folder, bool whole, uint64_t *functions,
                  struct error *error)
{
	struct symbol_folder *files;
	uint32_t count = model->symbols.count;
	int err = symbol_folder_open(&files, folder, whole, error);

	*functions = 0;
	if (err)
		return err;
	for (uint32_t i = 0; i < count && !err; i++) {
		const struct symbol *symbol = &model->symbols.items[i];

		if (symbol->build_id && symbol->module_address)
			err = resolve(model, files, i, functions);
	}
	symbol_folder_close(files);
	if (!err)
		err = model_name_stacks(model);
	return err == -ENOMEM ? error_no_memory(error) : err;
}
