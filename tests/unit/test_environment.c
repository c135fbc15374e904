// SPDX-License-Identifier: GPL-2.0-only
/* The environment that a recorded command gets. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/pure_environment.h"

static void make(struct environment *environment, const char *const *variables)
{
	memset(environment, 0, sizeof(*environment));
	cr_assert_eq(environment_copy(environment, (char *const *)variables), 0);
}

static void expect(const struct environment *environment, const char *name, const char *value)
{
	const char *found = environment_get(environment, name);

	if (!value)
		cr_assert_null(found, "%s=%s", name, found ? found : "");
	else
		cr_assert(found && !strcmp(found, value), "%s=%s, not %s", name, found ? found : "(unset)",
		          value);
}

Test(environment, set_get_unset)
{
	struct environment environment;

	make(&environment, (const char *const[]){"A=1", "AB=2", "EMPTY=", NULL});
	expect(&environment, "A", "1");
	expect(&environment, "AB", "2");
	expect(&environment, "EMPTY", "");
	expect(&environment, "B", NULL);
	cr_assert_eq(environment_set(&environment, "A", "one=1"), 0);
	cr_assert_eq(environment_set(&environment, "NEW", "x"), 0);
	expect(&environment, "A", "one=1");
	expect(&environment, "NEW", "x");
	environment_unset(&environment, "A");
	expect(&environment, "A", NULL);
	expect(&environment, "AB", "2");
	cr_assert_eq(environment.count, 3);
	environment_free(&environment);
}

Test(environment, vector_ends_with_null_and_can_be_made_again)
{
	struct environment environment;
	char **vector;

	make(&environment, (const char *const[]){"A=1", "B=2", NULL});
	vector = environment_vector(&environment);
	cr_assert(vector);
	cr_assert_str_eq(vector[1], "B=2");
	cr_assert_null(vector[2]);
	cr_assert_eq(environment_set(&environment, "C", "3"), 0);
	vector = environment_vector(&environment);
	cr_assert_str_eq(vector[2], "C=3");
	cr_assert_null(vector[3]);
	environment_free(&environment);
}

Test(environment, parse_takes_what_proc_gives)
{
	static const char block[] = "A=1\0\0junk\0=odd\0B=two words\0LAST=cut";
	struct environment environment = {0};

	cr_assert_eq(environment_parse(&environment, block, sizeof(block) - 1), 0);
	cr_assert_eq(environment.count, 3);
	expect(&environment, "A", "1");
	expect(&environment, "B", "two words");
	expect(&environment, "LAST", "cut");
	environment_free(&environment);
}

Test(environment, undo_sudo_gives_the_users_own)
{
	const struct environment_user user = {"ada", "/home/ada", "/bin/zsh"};
	struct environment own, invoker;

	make(&own,
	     (const char *const[]){"PATH=/usr/sbin:/usr/bin", "HOME=/root", "USER=root", "LOGNAME=root",
	                           "SHELL=/bin/bash", "MAIL=/var/mail/root", "SUDO_UID=1000", "SUDO_USER=ada",
	                           "SUDO_COMMAND=whyidle", "TERM=xterm", "BATCH=64", "LANG=C", NULL});
	make(&invoker,
	     (const char *const[]){"PATH=/home/ada/venv/bin:/usr/bin", "LD_LIBRARY_PATH=/opt/lib",
	                           "VIRTUAL_ENV=/home/ada/venv", "HOME=/home/ada", "LANG=de_DE", NULL});
	cr_assert_eq(environment_undo_sudo(&own, &invoker, &user), 0);
	expect(&own, "PATH", "/home/ada/venv/bin:/usr/bin");
	expect(&own, "LD_LIBRARY_PATH", "/opt/lib");
	expect(&own, "VIRTUAL_ENV", "/home/ada/venv");
	expect(&own, "HOME", "/home/ada");
	expect(&own, "USER", "ada");
	expect(&own, "LOGNAME", "ada");
	expect(&own, "SHELL", "/bin/zsh");
	expect(&own, "MAIL", NULL);
	expect(&own, "SUDO_UID", NULL);
	expect(&own, "SUDO_USER", NULL);
	expect(&own, "SUDO_COMMAND", NULL);
	expect(&own, "TERM", "xterm");
	expect(&own, "BATCH", "64"); /* sudo BATCH=64 whyidle … */
	expect(&own, "LANG", "C");   /* the same: sudo's command line wins */
	environment_free(&own);
	environment_free(&invoker);
}

Test(environment, undo_sudo_without_the_users_own)
{
	const struct environment_user user = {"ada", "/home/ada", NULL};
	struct environment own, invoker = {0};

	make(&own,
	     (const char *const[]){"PATH=/usr/bin", "HOME=/root", "SHELL=/bin/bash", "SUDO_UID=1000", NULL});
	cr_assert_eq(environment_undo_sudo(&own, &invoker, &user), 0);
	expect(&own, "PATH", "/usr/bin");
	expect(&own, "HOME", "/home/ada");
	expect(&own, "SHELL", "/bin/bash");
	expect(&own, "SUDO_UID", NULL);
	environment_free(&own);
}

static void make_file(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
}

Test(environment, command_is_found_as_a_shell_finds_it)
{
	char directory[] = "/tmp/environment-XXXXXX", path[256], one[64], two[64], *found;

	cr_assert(mkdtemp(directory));
	snprintf(one, sizeof(one), "%s/one", directory);
	snprintf(two, sizeof(two), "%s/two", directory);
	snprintf(path, sizeof(path), "/nonexistent:%s:%s", one, two);
	cr_assert_eq(mkdir(one, 0755) | mkdir(two, 0755), 0);
	snprintf(one, sizeof(one), "%s/one/tool", directory);
	snprintf(two, sizeof(two), "%s/two/tool", directory);

	cr_assert_null(environment_find_command("tool", path));
	cr_assert_eq(errno, ENOENT);
	make_file(one, 0644);
	cr_assert_null(environment_find_command("tool", path));
	cr_assert_eq(errno, EACCES);
	make_file(two, 0755);
	found = environment_find_command("tool", path);
	cr_assert(found && !strcmp(found, two), "%s", found ? found : "(none)");
	free(found);
	found = environment_find_command(two, NULL);
	cr_assert(found && !strcmp(found, two));
	free(found);
	cr_assert_null(environment_find_command(directory, NULL));
	cr_assert_eq(errno, EACCES, "a directory cannot be run");
	cr_assert_null(environment_find_command("", path));
	cr_assert_eq(errno, ENOENT);

	unlink(one);
	unlink(two);
	snprintf(one, sizeof(one), "%s/one", directory);
	snprintf(two, sizeof(two), "%s/two", directory);
	rmdir(one);
	rmdir(two);
	rmdir(directory);
}

Test(environment, command_line_is_quoted_where_needed)
{
	char *line =
	    environment_command_line((char *[]){"python3", "train.py", "--name=a b", "it's", "", NULL});

	cr_assert_str_eq(line, "python3 train.py '--name=a b' 'it'\\''s' ''");
	free(line);
}
