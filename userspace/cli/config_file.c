// SPDX-License-Identifier: GPL-2.0-only
#include "cli/config_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE 65536

static int read_text(struct config_file *file, const char *path, struct error *error)
{
	FILE *in = fopen(path, "re");
	size_t got;

	if (!in)
		return error_set(error, -errno, "cannot read %s: %s", path, strerror(errno));
	file->text = calloc(1, MAX_FILE + 1);
	got = file->text ? fread(file->text, 1, MAX_FILE, in) : 0;
	if (!file->text) {
		fclose(in);
		return error_no_memory(error);
	}
	if (ferror(in) || got == MAX_FILE || strlen(file->text) != got) {
		fclose(in);
		return error_set(error, -EINVAL, "%s is no configuration file", path);
	}
	fclose(in);
	return 0;
}

static char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t\r");
	length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* "name = value" as the words that the options' parser knows: "--name=value". */
static int take_line(const char *path, unsigned number, char *line, const struct command_spec *spec,
                     void *values, struct config_file *file, struct error *error)
{
	char *name, *value, *word, *argv[2];
	const char **slot;
	struct error why;
	int first;

	name = trim(line);
	if (!*name || *name == '#')
		return 0;
	value = strchr(name, '=');
	if (value) {
		*value++ = '\0';
		value = trim(value);
		name = trim(name);
	}
	if (!*name || name[strcspn(name, " \t-")] == ' ' || !strcmp(name, "help"))
		return error_set(error, -EINVAL, "%s, line %u: '%s' is not NAME = VALUE", path, number, name);
	if (asprintf(&word, "--%s%s%s", name, value ? "=" : "", value ? value : "") < 0)
		return error_no_memory(error);
	slot = array_add(&file->words);
	if (!slot) {
		free(word);
		return error_no_memory(error);
	}
	*slot = word;
	argv[0] = (char *)spec->name;
	argv[1] = word;
	if (options_parse(spec, 2, argv, values, &first, &why) != OPTIONS_OK)
		return error_set(error, -EINVAL, "%s, line %u: %s", path, number, why.text);
	return 0;
}

int config_file_read(struct config_file *file, const char *path, const struct command_spec *spec,
                     void *values, struct error *error)
{
	char *line, *rest;
	unsigned number = 0;
	int err;

	*file = (struct config_file){0};
	err = read_text(file, path, error);
	rest = file->text;
	while (!err && rest && *rest) {
		line = rest;
		rest = strchr(rest, '\n');
		if (rest)
			*rest++ = '\0';
		err = take_line(path, ++number, line, spec, values, file, error);
	}
	return err;
}

void config_file_free(struct config_file *file)
{
	const char **word;

	array_for_each (word, &file->words)
		free((char *)*word);
	array_free(&file->words);
	free(file->text);
	file->text = NULL;
}
