// SPDX-License-Identifier: GPL-2.0-only
#include "cli/manual.h"

#include <string.h>

/* ---- the page ---- */

/* Text in which roff finds nothing to interpret; a line break stays one. */
static void put_roff(FILE *out, const char *text, size_t length)
{
	bool line_start = true;

	for (const char *end = text + length; text < end; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		line_start = *text == '\n';
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '-')
			fputs("\\-", out);
		else
			fputc(*text, out);
	}
}

static void put_roff_text(FILE *out, const char *text)
{
	put_roff(out, text, strlen(text));
}

static void put_page_option(FILE *out, char letter, const char *name, const char *argument, const char *help)
{
	fputs(".TP\n.B ", out);
	if (letter)
		fprintf(out, "\\-%c, ", letter);
	fputs("\\-\\-", out);
	put_roff_text(out, name);
	if (argument) {
		fputs(" \\fI", out);
		put_roff_text(out, argument);
		fputs("\\fP", out);
	}
	fputc('\n', out);
	put_roff_text(out, help);
	fputc('\n', out);
}

static void put_page_command(FILE *out, const struct command_spec *spec)
{
	fprintf(out, ".SS whyidle %s ", spec->name);
	put_roff_text(out, spec->usage);
	fputc('\n', out);
	put_roff_text(out, spec->summary);
	fputc('\n', out);
	for (size_t i = 0; i < spec->option_count; i++) {
		const struct option_spec *option = &spec->options[i];

		put_page_option(out, option->letter, option->name, option->argument, option->help);
	}
	put_page_option(out, 'h', "help", NULL, "show the options that are needed most");
	put_page_option(out, 0, "help-all", NULL, "show all of them");
	if (spec->notes) {
		size_t length = strlen(spec->notes);

		while (length && spec->notes[length - 1] == '\n')
			length--;
		fputs(".PP\n.nf\n", out);
		put_roff(out, spec->notes, length);
		fputs("\n.fi\n", out);
	}
}

void manual_page(FILE *out, const struct manual *manual)
{
	fprintf(out, ".TH WHYIDLE 1 \"\" \"whyidle %s\"\n", manual->version);
	fputs(".SH NAME\nwhyidle \\- tells why a GPU was idle\n"
	      ".SH SYNOPSIS\n.B whyidle\n[\\fICOMMAND\\fP ...]\n"
	      ".SH DESCRIPTION\n"
	      "Records an unmodified program and names the host thread, the lock, the worker process, the "
	      "system "
	      "call or\nthe missing CPU that the GPU waited for, with the time that each cost.\n"
	      "Without a command, as root, it watches all that uses a GPU for ten seconds and explains it.\n"
	      ".SH COMMANDS\n",
	      out);
	for (size_t i = 0; i < manual->count; i++)
		put_page_command(out, manual->commands[i]);
	fputs(".SS whyidle completion bash|zsh\nPrints a script that completes commands and options in that "
	      "shell.\n"
	      ".SS whyidle manual\nPrints this page.\n.SS whyidle version\nPrints the version.\n"
	      ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nthe run or the input failed\n.TP\n.B 2\nwrong "
	      "usage\n"
	      ".TP\n.B 3\na limit of \\-\\-fail\\-if was exceeded\n.PP\n"
	      ".B record\nreturns the status of the recorded command.\n"
	      ".SH EXAMPLES\n.nf\n",
	      out);
	put_roff_text(out, manual->examples);
	fputs(".fi\n", out);
}

/* ---- completion ---- */

static void put_choices(FILE *out, const struct option_spec *option)
{
	for (int i = 0; option->choices[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", option->choices[i]);
}

/* What takes the name of a file; all other arguments are left to the user. */
static bool takes_file(const struct option_spec *option)
{
	return option->argument && (!strcmp(option->argument, "FILE") || !strcmp(option->argument, "OUT") ||
	                            !strcmp(option->argument, "PATH") || !strcmp(option->argument, "DIR"));
}

static void put_bash_arguments(FILE *out, const struct command_spec *spec)
{
	for (size_t i = 0; i < spec->option_count; i++) {
		const struct option_spec *option = &spec->options[i];

		if (!option->argument)
			continue;
		fprintf(out, "\t%s:--%s", spec->name, option->name);
		if (option->letter)
			fprintf(out, " | %s:-%c", spec->name, option->letter);
		fputs(") ", out);
		if (option->kind == OPTION_CHOICE) {
			fputs("COMPREPLY=($(compgen -W '", out);
			put_choices(out, option);
			fputs("' -- \"$word\"));", out);
		} else if (takes_file(option)) {
			fputs("COMPREPLY=($(compgen -f -- \"$word\"));", out);
		} else {
			fputs("COMPREPLY=();", out);
		}
		fputs(" return ;;\n", out);
	}
}

void manual_bash(FILE *out, const struct manual *manual)
{
	fputs("# bash completion for whyidle; made by: whyidle completion bash\n"
	      "_whyidle() {\n"
	      "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} "
	      "command=${COMP_WORDS[1]} "
	      "i\n"
	      "\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W '",
	      out);
	for (size_t i = 0; i < manual->count; i++)
		fprintf(out, "%s ", manual->commands[i]->name);
	fputs("completion manual version help' -- \"$word\"))\n\t\treturn\n\tfi\n"
	      "\t# What follows -- is another program's.\n"
	      "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	      "\t\tif [[ ${COMP_WORDS[i]} == -- ]]; then\n"
	      "\t\t\tif ((COMP_CWORD == i + 1)); then COMPREPLY=($(compgen -c -f -- \"$word\"))\n"
	      "\t\t\telse COMPREPLY=($(compgen -f -- \"$word\")); fi\n\t\t\treturn\n\t\tfi\n\tdone\n"
	      "\tcase $command:$before in\n",
	      out);
	for (size_t i = 0; i < manual->count; i++)
		put_bash_arguments(out, manual->commands[i]);
	fputs("\tcompletion:completion) COMPREPLY=($(compgen -W 'bash zsh' -- \"$word\")); return ;;\n"
	      "\tesac\n"
	      "\tif [[ $word != -* ]]; then\n\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n\t\treturn\n\tfi\n"
	      "\tcase $command in\n",
	      out);
	for (size_t i = 0; i < manual->count; i++) {
		const struct command_spec *spec = manual->commands[i];

		fprintf(out, "\t%s) COMPREPLY=($(compgen -W '", spec->name);
		for (size_t k = 0; k < spec->option_count; k++)
			fprintf(out, "--%s ", spec->options[k].name);
		fputs("--help --help-all' -- \"$word\")) ;;\n", out);
	}
	fputs("\tesac\n}\ncomplete -o filenames -F _whyidle whyidle\n", out);
}

/* Inside '…[…]…' of _arguments. */
static void put_zsh_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr("[]:\\", *text))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

static void put_zsh_option(FILE *out, const struct option_spec *option)
{
	const char *many = option->kind == OPTION_TEXTS ? "*" : "";

	for (int form = option->letter ? 0 : 1; form < 2; form++) {
		if (form)
			fprintf(out, "\t\t\t'%s--%s[", many, option->name);
		else
			fprintf(out, "\t\t\t'%s-%c[", many, option->letter);
		put_zsh_text(out, option->help);
		fputc(']', out);
		if (option->argument) {
			fputc(':', out);
			put_zsh_text(out, option->argument);
			fputc(':', out);
			if (option->kind == OPTION_CHOICE) {
				fputc('(', out);
				put_choices(out, option);
				fputc(')', out);
			} else if (takes_file(option)) {
				fputs("_files", out);
			}
		}
		fputs("' \\\n", out);
	}
}

void manual_zsh(FILE *out, const struct manual *manual)
{
	fputs("#compdef whyidle\n# zsh completion for whyidle; made by: whyidle completion zsh\n"
	      "_whyidle() {\n\tlocal -a commands\n\tcommands=(\n",
	      out);
	for (size_t i = 0; i < manual->count; i++) {
		fprintf(out, "\t\t'%s:", manual->commands[i]->name);
		put_zsh_text(out, manual->commands[i]->summary);
		fputs("'\n", out);
	}
	fputs("\t\t'completion:Prints a completion script.'\n\t\t'manual:Prints the manual page.'\n"
	      "\t\t'version:Prints the version.'\n\t)\n"
	      "\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
	      "\tlocal command=$words[2]\n\tshift words\n\t((CURRENT--))\n\tcase $command in\n",
	      out);
	for (size_t i = 0; i < manual->count; i++) {
		const struct command_spec *spec = manual->commands[i];

		fprintf(out, "\t%s)\n\t\t_arguments \\\n", spec->name);
		for (size_t k = 0; k < spec->option_count; k++)
			put_zsh_option(out, &spec->options[k]);
		fprintf(out, "\t\t\t'--help[show this]' '--help-all[show all options]' '*::%s'\n\t\t;;\n",
		        spec->stop_at_operand ? "command:_normal" : "file:_files");
	}
	fputs("\tcompletion)\n\t\t_values shell bash zsh\n\t\t;;\n\tesac\n}\n_whyidle \"$@\"\n", out);
}
