// SPDX-License-Identifier: GPL-2.0-only
/* Parts of the daemon that need no kernel: history, identities, counters, triggers, results, configuration.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/config_file.h"
#include "cli/quantity.h"
#include "daemon/config.h"
#include "daemon/families.h"
#include "daemon/history.h"
#include "daemon/identity.h"
#include "daemon/results.h"
#include "daemon/targets.h"
#include "daemon/triggers.h"

#define SECOND_NS 1000000000ULL

static const struct identity somebody = {.process = "train"};

/* ---- identities ---- */

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

Test(identity, container_and_pod_from_control_groups)
{
	static const struct {
		const char *cgroup, *container, *pod;
	} cases[] = {
	    {"0::/user.slice/user-1000.slice/session-3.scope\n", "", ""},
	    {"0::/system.slice/docker-" ID ".scope\n", "0123456789ab", ""},
	    {"12:cpu:/docker/" ID "\n11:memory:/docker/" ID "\n", "0123456789ab", ""},
	    {"0::/kubepods.slice/kubepods-burstable.slice/"
	     "kubepods-burstable-pod1f2e3d4c_5b6a_7988_a1b2_c3d4e5f60718.slice/cri-containerd-" ID ".scope\n",
	     "0123456789ab", "1f2e3d4c-5b6a-7988-a1b2-c3d4e5f60718"},
	    {"0::/kubepods/besteffort/pod1f2e3d4c-5b6a-7988-a1b2-c3d4e5f60718/" ID "\n", "0123456789ab",
	     "1f2e3d4c-5b6a-7988-a1b2-c3d4e5f60718"},
	    {"0::/podman/pod/poder\n", "", ""},
	    {"0::/" ID "0\n", "", ""}, /* too long for an id */
	    {"", "", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct identity identity = {0};

		identity_from_cgroup(&identity, cases[i].cgroup);
		cr_assert_str_eq(identity.container, cases[i].container, "%s", cases[i].cgroup);
		cr_assert_str_eq(identity.pod, cases[i].pod, "%s", cases[i].cgroup);
	}
}

/* ---- history ---- */

static char folder[64];

static void make_folder(void)
{
	strcpy(folder, "/tmp/whyidle-history-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

/* A window of so many KiB. */
static void record(struct history *history, uint64_t start_ms, size_t kib)
{
	char path[PATH_MAX], *bytes = malloc(kib * 1024);
	int fd;

	memset(bytes, 'x', kib * 1024);
	history_path(history, start_ms, path);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(write(fd, bytes, kib * 1024), (ssize_t)(kib * 1024));
	cr_assert_eq(fsync(fd), 0); /* so that its blocks are there */
	close(fd);
	free(bytes);
	cr_assert_eq(history_add(history, start_ms, 1000), 0);
}

Test(history, oldest_go_first_and_the_limit_is_hard, .init = make_folder, .fini = remove_folder)
{
	struct history history;
	struct error error;

	cr_assert_eq(history_open(&history, folder, &error), 0, "%s", error.text);
	for (int i = 0; i < 10; i++) {
		record(&history, 1000 + (uint64_t)i, 100);
		history_trim(&history, HISTORY_WINDOWS, 450 * 1024, 0, 2000);
		cr_assert_leq(history.bytes[HISTORY_WINDOWS], 450 * 1024);
	}
	cr_assert_eq(history.items[HISTORY_WINDOWS].count, 4);
	cr_assert_eq(history.items[HISTORY_WINDOWS].items[0].start_ms, 1006);
	cr_assert_eq(history_trim(&history, HISTORY_WINDOWS, 50 * 1024, 0, 2000), 4);
	cr_assert_eq(history.bytes[HISTORY_WINDOWS], 0);
	history_close(&history);
}

Test(history, a_restart_finds_what_was_kept, .init = make_folder, .fini = remove_folder)
{
	struct history history;
	struct error error;
	char path[PATH_MAX], name[80];
	int fd;

	cr_assert_eq(history_open(&history, folder, &error), 0, "%s", error.text);
	record(&history, 2000, 4);
	record(&history, 1000, 4);
	cr_assert_eq(history_keep(&history, 2000, "gap", name), 0);
	cr_assert_str_eq(name, "2000-gap.whyidle");
	cr_assert_eq(history_keep(&history, 3000, "gap", name), -ENOENT);
	history_path(&history, 3000, path); /* a daemon that was killed leaves it behind */
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/windows/somebody-elses", folder);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	history_close(&history);

	cr_assert_eq(history_open(&history, folder, &error), 0, "%s", error.text);
	cr_assert_eq(history.items[HISTORY_WINDOWS].count, 2);
	cr_assert_eq(history.items[HISTORY_WINDOWS].items[0].start_ms, 1000);
	cr_assert_eq(history.items[HISTORY_KEPT].count, 1);
	cr_assert_gt(history.bytes[HISTORY_KEPT], 0);
	cr_assert_eq(access(path, F_OK), 0, "files of others are left alone");
	history_path(&history, 3000, path);
	cr_assert_neq(access(path, F_OK), 0, "what was not finished goes");
	/* By age; what was kept has an age of its own. */
	cr_assert_eq(history_trim(&history, HISTORY_WINDOWS, UINT64_MAX, 500, 1800), 1);
	cr_assert_eq(history.items[HISTORY_WINDOWS].items[0].start_ms, 2000);
	cr_assert_eq(history_trim(&history, HISTORY_WINDOWS, UINT64_MAX, 500, 9000), 1);
	history_item_path(&history, HISTORY_KEPT, &history.items[HISTORY_KEPT].items[0], path);
	cr_assert_eq(access(path, R_OK), 0);
	history_close(&history);
}

Test(history, is_for_its_owner_only, .init = make_folder, .fini = remove_folder)
{
	struct history history;
	struct error error;
	struct stat status;
	char path[PATH_MAX];

	cr_assert_eq(history_open(&history, folder, &error), 0);
	snprintf(path, sizeof(path), "%s/windows", folder);
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq(status.st_mode & 077, 0);
	history_close(&history);
	cr_assert_lt(history_open(&history, "/proc/no-such-folder", &error), 0);
	history_close(&history);
}

/* ---- counters ---- */

static struct counters_thread counted(uint32_t pid, uint32_t tid, uint64_t run_ns, uint64_t switches)
{
	return (struct counters_thread){
	    .tgid = pid, .tid = tid, .root = 100, .start_ns = tid, .run_ns = run_ns, .voluntary = switches};
}

static double value_of(struct metrics *metrics, enum family family, const char *more)
{
	return *metrics_at(metrics, family, 1, "", "", "", more);
}

Test(targets, readings_become_sums_and_profiles)
{
	struct metrics *metrics = metrics_new(families, FAMILY_COUNT);
	struct targets targets = {0};
	struct target *target = targets_add(&targets, 100, &somebody);

	memset(&target->identity, 0, sizeof(target->identity));
	for (uint64_t second = 1; second <= 6; second++) {
		/* A launcher at half a CPU, a worker at a quarter, a thread that comes later, one that goes.
		 */
		struct counters_thread threads[] = {
		    counted(100, 100, 7 * SECOND_NS + second * SECOND_NS / 2, 50 * second),
		    counted(101, 101, second * SECOND_NS / 4, 0),
		    counted(100, second < 3 ? 102 : 103, second * SECOND_NS / 100, 0),
		};

		for (size_t i = 3; i-- > 0;) /* in any order */
			cr_assert_eq(targets_take(&targets, &threads[i]), 0);
		targets_read(&targets, metrics, second * SECOND_NS);
	}
	target = targets_find(&targets, 100);
	cr_assert_eq(target->threads, 3);
	cr_assert_eq(target->processes, 2);
	cr_assert_float_eq(target->now.cpu, 0.75, 0.05);
	cr_assert_float_eq(target->now.switches, 50, 0.1);
	/* What was before the first reading is not counted, a thread that is new is from its beginning. */
	cr_assert_float_eq(value_of(metrics, FAMILY_PROCESS_CPU, NULL), 5 * 0.75 + 0.01 + 0.06, 1e-6);
	cr_assert_float_eq(value_of(metrics, FAMILY_PROCESS_SWITCHES, "voluntary"), 250, 1e-6);
	targets_remove(&targets, 100);
	targets_remove(&targets, 100);
	cr_assert_null(targets_find(&targets, 100));
	targets_free(&targets);
	metrics_free(metrics);
}

static void read_seconds(struct targets *targets, struct metrics *metrics, uint64_t *second, unsigned count,
                         uint64_t *run_ns, uint64_t each_ns)
{
	for (unsigned i = 0; i < count; i++) {
		struct counters_thread thread;

		*run_ns += each_ns;
		thread = counted(100, 100, *run_ns, 0);
		targets_take(targets, &thread);
		targets_read(targets, metrics, ++*second * SECOND_NS);
	}
}

Test(targets, a_change_of_habits_is_a_shift_noise_is_none)
{
	struct metrics *metrics = metrics_new(families, FAMILY_COUNT);
	struct targets targets = {0};
	uint64_t second = 0, run = 0;

	targets_add(&targets, 100, &somebody);
	read_seconds(&targets, metrics, &second, 3, &run, 900000000);
	cr_assert_not(targets_settled(&targets), "two differences");
	read_seconds(&targets, metrics, &second, 1, &run, 900000000);
	cr_assert(targets_settled(&targets));
	cr_assert_not_null(targets_shifted(&targets), "there was no window yet");
	targets_window(&targets);
	read_seconds(&targets, metrics, &second, 5, &run, 850000000);
	cr_assert_null(targets_shifted(&targets));
	read_seconds(&targets, metrics, &second, 5, &run, 200000000);
	cr_assert_not_null(targets_shifted(&targets));
	targets_window(&targets);
	cr_assert_null(targets_shifted(&targets));
	read_seconds(&targets, metrics, &second, 5, &run, 900000000);
	cr_assert_not_null(targets_shifted(&targets), "and back");
	targets_free(&targets);
	metrics_free(metrics);
}

/* ---- results and triggers ---- */

static const char *const document =
    "{\"processes\": [{\"pid\": 100, \"comm\": \"x\", \"launches\": 500}],"
    " \"steps\": {\"count\": 10, \"median_ns\": 1000, \"longest_ns\": 5000},"
    " \"cost\": {\"length_ns\": 900, \"probes_ns\": 7, \"slowdown\": 0.25},"
    " \"report\": {\"source\": {\"gpu_timeline\": \"inferred\"}, \"losses\": {\"bpf_ring\": 3},"
    " \"gpus\": [{\"device\": 1, \"uuid\": null, \"busy_ns\": 250000000, \"idle_ns\": 750000000, "
    "\"gap_count\": 4,"
    " \"op_count\": 5, \"causes\": [{\"code\": \"wait.lock\", \"role\": \"launcher\", \"ns\": 700000000,"
    " \"threads\": [{\"pid\": 100, \"ns\": 600000000}]}, {\"code\": \"unknown.lost\", \"role\": \"device\","
    " \"ns\": 50000000, \"threads\": []}], \"top_gaps\": [{\"start_ns\": 10, \"end_ns\": 600000010}]}]}}";

static const struct identity *nobody(void *context, uint32_t pid)
{
	static const struct identity identity = {.process = "job", .pod = "p"};

	(void)context;
	cr_assert_eq(pid, 100);
	return &identity;
}

Test(results, a_window_becomes_metrics)
{
	struct metrics *metrics = metrics_new(families, FAMILY_COUNT);
	struct window_result result;
	struct error error;

	cr_assert_eq(window_result_parse(&result, document, strlen(document), &error), 0, "%s", error.text);
	cr_assert_eq(result.longest_gap_ns, 600000000);
	cr_assert_eq(result.observed_ns, SECOND_NS);
	cr_assert_eq(result.idle_ns, 750000000);
	cr_assert_eq(result.probes_ns, 7);
	window_result_count(&result, metrics, 1, SECOND_NS, nobody, NULL);
	window_result_count(&result, metrics, 1, SECOND_NS, nobody, NULL);
	cr_assert_float_eq(
	    *metrics_at(metrics, FAMILY_GPU_IDLE, 1, "1", "wait.lock", "launcher", "job", "", "p"), 1.2,
	    1e-9);
	cr_assert_float_eq(*metrics_at(metrics, FAMILY_GPU_IDLE, 1, "1", "wait.lock", "launcher", "", "", ""),
	                   0.2, 1e-9);
	cr_assert_float_eq(*metrics_at(metrics, FAMILY_GPU_OBSERVED, 1, "1", "inferred"), 2, 1e-9);
	cr_assert_float_eq(*metrics_at(metrics, FAMILY_GPU_IDLE_RATIO, 1, "1"), 0.75, 1e-9);
	cr_assert_float_eq(*metrics_at(metrics, FAMILY_GPU_CAUSE_RATIO, 1, "1", "wait.lock", "launcher"), 0.7,
	                   1e-9);
	cr_assert_float_eq(*metrics_at(metrics, FAMILY_LAUNCHES, 1, "job", "", "p"), 1000, 1e-9);
	cr_assert_float_eq(*metrics_at(metrics, FAMILY_LOST, 1, "bpf_ring"), 6, 1e-9);
	window_result_free(&result);
	metrics_free(metrics);
}

Test(results, nonsense_is_refused)
{
	static const char *const wrong[] = {"", "{}", "[]", "{\"report\": 1}", "{\"report\": {}", "\xff"};
	struct window_result result;
	struct error error;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_assert_lt(window_result_parse(&result, wrong[i], strlen(wrong[i]), &error), 0, "%s",
		             wrong[i]);
		window_result_free(&result);
	}
	/* Right in form, with values that make no sense: no harm done. */
	{
		const char *odd = "{\"report\": {\"gpus\": [{\"busy_ns\": -5, \"causes\": {}}, 3, null]}}";
		struct metrics *metrics = metrics_new(families, FAMILY_COUNT);

		cr_assert_eq(window_result_parse(&result, odd, strlen(odd), &error), 0);
		window_result_count(&result, metrics, 1, SECOND_NS, nobody, NULL);
		window_result_free(&result);
		metrics_free(metrics);
	}
}

static unsigned judge(struct triggers *triggers, struct targets *targets, uint64_t second, double idle,
                      uint64_t gap_ns, uint64_t launches)
{
	struct daemon_config config;
	struct window_result result = {
	    .observed_ns = SECOND_NS, .idle_ns = (uint64_t)(idle * 1e9), .longest_gap_ns = gap_ns};
	struct process_result process = {.pid = 100, .launches = launches};

	daemon_config_init(&config);
	result.processes.items = &process;
	result.processes.count = 1;
	return triggers_judge(triggers, &config.trigger, &result, targets, second * SECOND_NS, SECOND_NS);
}

Test(triggers, fire_once_each_time_their_condition_begins)
{
	struct triggers triggers = {0};
	struct targets targets = {0};

	targets_add(&targets, 100, &somebody);
	cr_assert_eq(judge(&triggers, &targets, 1, 0.1, 1000, 1000), 0);
	cr_assert_eq(judge(&triggers, &targets, 11, 0.9, 1000, 1000), 0, "not for long enough");
	cr_assert(triggers_want_window(&triggers));
	cr_assert_eq(judge(&triggers, &targets, 21, 0.9, 1000, 1000), 0);
	cr_assert_eq(judge(&triggers, &targets, 41, 0.9, 1000, 1000), 1u << TRIGGER_IDLE);
	cr_assert_not(triggers_want_window(&triggers));
	cr_assert_eq(judge(&triggers, &targets, 51, 0.9, 1000, 1000), 0, "it holds still");
	cr_assert_eq(judge(&triggers, &targets, 61, 0.1, SECOND_NS * 2, 1000), 1u << TRIGGER_GAP);
	cr_assert_eq(judge(&triggers, &targets, 71, 0.1, 1000, 100), 1u << TRIGGER_RATE);
	cr_assert_eq(judge(&triggers, &targets, 81, 0.1, 1000, 100), 0);
	cr_assert_eq(judge(&triggers, &targets, 91, 0.1, 1000, 1000), 0);
	cr_assert_eq(judge(&triggers, &targets, 101, 0.1, SECOND_NS * 2, 1000), 1u << TRIGGER_GAP, "again");
	targets_free(&targets);
}

Test(triggers, what_is_kept_is_limited)
{
	struct triggers triggers = {0};
	struct daemon_config config;

	daemon_config_init(&config);
	cr_assert(triggers_may_keep(&triggers, &config.trigger, 1000 * SECOND_NS));
	cr_assert_not(triggers_may_keep(&triggers, &config.trigger, 1200 * SECOND_NS));
	cr_assert(triggers_may_keep(&triggers, &config.trigger, 1301 * SECOND_NS));
}

/* ---- configuration ---- */

struct file_values {
	uint64_t budget;
	const char *listen;
	bool flag;
};

static const struct option_spec file_options[] = {
    {.name = "budget", .argument = "X", .kind = OPTION_SHARE, .offset = offsetof(struct file_values, budget)},
    {.name = "listen", .argument = "X", .kind = OPTION_TEXT, .offset = offsetof(struct file_values, listen)},
    {.name = "flag", .kind = OPTION_FLAG, .offset = offsetof(struct file_values, flag)},
};
static const struct command_spec file_spec = {.name = "test", .options = file_options, .option_count = 3};

static int read_file(const char *text, struct file_values *values, struct config_file *file,
                     struct error *error)
{
	char path[] = "/tmp/whyidle-config-XXXXXX";
	int fd = mkstemp(path), err;

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	err = config_file_read(file, path, &file_spec, values, error);
	unlink(path);
	return err;
}

Test(config_file, names_and_values)
{
	struct file_values values = {0};
	struct config_file file;
	struct error error = {0};

	cr_assert_eq(read_file("# what it may cost\n  budget = 0.25%\n\nlisten=[::1]:80\r\nflag\n", &values,
	                       &file, &error),
	             0, "%s", error.text);
	cr_assert_eq(values.budget, 2500);
	cr_assert_str_eq(values.listen, "[::1]:80");
	cr_assert(values.flag);
	config_file_free(&file);
}

Test(config_file, errors_name_the_line)
{
	static const char *const wrong[] = {"\nbudget = much\n", "\nnothing = 1\n", "\nbudget\n", "\n= 5\n",
	                                    "\nhelp\n",          "\ntwo words = 1", "\n-h\n"};
	struct file_values values = {0};
	struct config_file file;
	struct error error = {0};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_assert_lt(read_file(wrong[i], &values, &file, &error), 0, "%s", wrong[i]);
		cr_assert(strstr(error.text, "line 2"), "%s", error.text);
		config_file_free(&file);
	}
	cr_assert_eq(config_file_read(&file, "/nowhere", &file_spec, &values, &error), -ENOENT);
	config_file_free(&file);
}

Test(quantity, shares_and_long_times)
{
	uint64_t value;

	cr_assert_eq(quantity_share("0.5%", &value), 0);
	cr_assert_eq(value, 5000);
	cr_assert_eq(quantity_share("0.01%", &value), 0);
	cr_assert_eq(value, 100);
	cr_assert_eq(quantity_share("100%", &value), 0);
	cr_assert_eq(quantity_share("101%", &value), -ERANGE);
	cr_assert_eq(quantity_share("0.5", &value), -EINVAL);
	cr_assert_eq(quantity_share("%", &value), -EINVAL);
	cr_assert_eq(quantity_time("7d", &value), 0);
	cr_assert_eq(value, 7 * 86400 * SECOND_NS);
	cr_assert_eq(quantity_time("1.5h", &value), 0);
	cr_assert_eq(value, 5400 * SECOND_NS);
}
