/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/bpf_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Copies `length` bytes of a name into the text; 0 (the empty text) if memory ran out. */
static uint32_t keep_text(struct kernel_symbols *symbols, const char *text, size_t length)
{
	uint32_t at = symbols->text_length;

	if (symbols->text_length + length + 1 > symbols->text_capacity) {
		size_t wanted = symbols->text_capacity ? symbols->text_capacity * 2 : 1 << 20;
		char *grown = wanted <= UINT32_MAX ? realloc(symbols->text, wanted) : NULL;

		if (!grown)
			return 0;
		symbols->text = grown;
		symbols->text_capacity = wanted;
	}
	memcpy(symbols->text + at, text, length);
	symbols->text[at + length] = '\0';
	symbols->text_length += length + 1;
	return at;
}

/* A line is "ADDRESS TYPE NAME" and, in a module, "\t[MODULE]". */
static int keep_line(struct kernel_symbols *symbols, const char *line, char *last_module,
                     uint32_t *last_offset)
{
	char name[256], module[128] = "";
	struct kernel_symbol *symbol;
	unsigned long long address;
	char type;

	if (sscanf(line, "%llx %c %255s [%127[^]]]", &address, &type, name, module) < 3 ||
	    !strchr("tTwW", type) || !address)
		return 0;
	symbol = array_add(symbols);
	if (!symbol)
		return -ENOMEM;
	symbol->address = address;
	symbol->name = keep_text(symbols, name, strlen(name));
	if (!symbol->name)
		return -ENOMEM;
	if (*module && strcmp(module, last_module)) {
		*last_offset = keep_text(symbols, module, strlen(module));
		snprintf(last_module, sizeof(module), "%s", module);
	}
	symbol->module = *module ? *last_offset : 0;
	return 0;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct kernel_symbol *left = a, *right = b;

	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	/* Of several names of one address the first of the file stays first. */
	return left->name < right->name ? -1 : left->name > right->name;
}

int kernel_symbols_load(struct kernel_symbols *symbols)
{
	char *line = NULL, last_module[128] = "";
	uint32_t last_offset = 0;
	size_t size = 0;
	FILE *file;
	int err = 0;

	*symbols = (struct kernel_symbols){0};
	file = fopen("/proc/kallsyms", "re");
	if (!file)
		return -errno;
	/* Offset 0 is the empty text. */
	keep_text(symbols, "", 0);
	if (!symbols->text)
		err = -ENOMEM;
	while (!err && getline(&line, &size, file) > 0)
		err = keep_line(symbols, line, last_module, &last_offset);
	if (!err && ferror(file))
		err = -EIO;
	free(line);
	fclose(file);
	if (!err && !symbols->count)
		err = -EACCES;
	if (err)
		kernel_symbols_free(symbols);
	else
		array_sort(symbols, compare_symbols);
	return err;
}

const char *kernel_symbols_find(const struct kernel_symbols *symbols, uint64_t address, const char **module)
{
	size_t low = 0, high = symbols->count;
	const struct kernel_symbol *found;

	*module = NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->items[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	found = &symbols->items[low - 1];
	while (found > symbols->items && found[-1].address == found->address)
		found--;
	if (found->module)
		*module = symbols->text + found->module;
	return symbols->text + found->name;
}

void kernel_symbols_free(struct kernel_symbols *symbols)
{
	free(symbols->items);
	free(symbols->text);
	*symbols = (struct kernel_symbols){0};
}
