/* SPDX-License-Identifier: GPL-2.0-only */
/* Texts of /proc/PID taken apart. */
#include <criterion/criterion.h>
#include <string.h>

#include "bpf/events.h"
#include "bpf/settings.h"
#include "collect/pure_call_arguments.h"
#include "collect/pure_nccl_calls.h"
#include "base/proc_file.h"
#include "collect/pure_process_match.h"
#include "model/cuda_call.h"

#define ID "3f1c9d2ab4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f"

Test(process_match, stat_of_any_name)
{
	struct process_stat stat = {0};

	cr_assert(process_stat_parse(
	    "17 (a) R 1 (b) S 5 17 17 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987 4096000 12 "
	    "18446744073709551615",
	    &stat));
	cr_assert(stat.parent == 5 && stat.start_ticks == 987 && stat.memory_bytes == 4096000);
	cr_assert_not(process_stat_parse("", &stat));
	cr_assert_not(process_stat_parse("17 (a) S 5 17 17", &stat));
	cr_assert_not(process_stat_parse("17 a S 5 17 17 0 -1", &stat));
}

Test(process_match, groups)
{
	const char *unified = "0::/system.slice/docker-" ID ".scope\n";
	const char *old = "12:memory:/docker/" ID "\n4:cpu,cpuacct:/jobs/a\n1:name=systemd:/\n";

	cr_assert(cgroup_is_below(unified, "/system.slice"));
	cr_assert(cgroup_is_below(unified, "/system.slice/"));
	cr_assert(cgroup_is_below(unified, "/sys/fs/cgroup/system.slice"));
	cr_assert(cgroup_is_below(unified, "/"));
	cr_assert_not(cgroup_is_below(unified, "/system"));
	cr_assert_not(cgroup_is_below(unified, "/user.slice"));
	cr_assert(cgroup_is_below(old, "/jobs"));
	cr_assert(cgroup_is_below(old, "/sys/fs/cgroup/cpu,cpuacct/jobs/a"));
	cr_assert_not(cgroup_is_below(old, "/sys/fs/cgroup/memory/jobs"));
	cr_assert_not(cgroup_is_below("", "/"));
	cr_assert_not(cgroup_is_below("nonsense", "/"));
}

Test(process_match, containers)
{
	const char *docker = "0::/system.slice/docker-" ID ".scope\n";
	const char *pod = "0::/kubepods.slice/pod1/cri-containerd-" ID ".scope/inner\n";
	char id[65];

	cr_assert(cgroup_in_container(docker, ID));
	cr_assert(cgroup_in_container(docker, "3f1c9d2ab4e5"));
	cr_assert_not(cgroup_in_container(docker, "f1c9d2ab4e5"), "an id is matched from its beginning");
	cr_assert_not(cgroup_in_container(docker, "3f1c"), "too short to mean one container");
	cr_assert_not(cgroup_in_container(docker, ""));
	cr_assert(cgroup_in_container(pod, "3f1c9d2ab4e5"));
	cr_assert(cgroup_container(docker, id) && !strcmp(id, ID));
	cr_assert(cgroup_container(pod, id) && !strcmp(id, ID));
	cr_assert(cgroup_container("3:cpu:/docker/" ID "\n", id) && !strcmp(id, ID));
	cr_assert_not(cgroup_container("0::/user.slice/" ID "0\n", id), "longer than an id");
	cr_assert_not(cgroup_container("0::/\n", id));
}

#define UID "0d3c1f4e-1234-5678-9abc-def012345678"

Test(process_match, pods)
{
	char uid[37];

	cr_assert(cgroup_pod("0::/kubepods/burstable/pod" UID "/" ID "\n", uid));
	cr_assert_str_eq(uid, UID);
	cr_assert(cgroup_pod("0::/kubepods.slice/kubepods-burstable.slice/"
	                     "kubepods-burstable-pod0d3c1f4e_1234_5678_9abc_def012345678.slice/crio-" ID
	                     ".scope\n",
	                     uid));
	cr_assert_str_eq(uid, UID);
	cr_assert(cgroup_pod("3:cpu:/a\n2:memory:/kubepods/pod0123456789abcdef0123456789abcdef/x\n", uid));
	cr_assert_str_eq(uid, "0123456789abcdef0123456789abcdef", "a static pod");
	cr_assert_not(cgroup_pod("0::/user.slice/pod" UID "\n", uid), "not below kubepods");
	cr_assert_not(cgroup_pod("0::/mykubepods/pod" UID "\n", uid));
	cr_assert_not(cgroup_pod("0::/kubepods/burstable/pod" UID "0/" ID "\n", uid), "longer");
	cr_assert_not(cgroup_pod("0::/kubepods/burstable/pod0d3c1f4e-1234\n", uid), "shorter");
	cr_assert_not(cgroup_pod("0::/kubepods/burstable\n", uid));
	cr_assert_not(cgroup_pod("0::/kubepods/pod", uid));
	cr_assert_not(cgroup_pod("", uid));
}

Test(process_match, namespaces)
{
	cr_assert_eq(proc_status_namespace_id("Name:\tx\nNSpid:\t4711\t12\t1\nNSpgid:\t2\n"), 1);
	cr_assert_eq(proc_status_namespace_id("Name:\tx\nNSpid:\t4711\nNSpgid:\t2\t3\n"), 0, "in ours");
	cr_assert_eq(proc_status_namespace_id("Name:\tx\n"), 0);
	cr_assert_eq(proc_status_namespace_id(""), 0);
}

Test(process_match, libraries)
{
	size_t length;

	cr_assert(is_cuda_driver("libcuda.so") && is_cuda_driver("libcuda.so.580.65.06"));
	cr_assert_not(is_cuda_driver("libcudart.so.13"));
	cr_assert(is_cuda_library("libcudart.so.13") && is_cuda_library("libcudart-0a1b2c.so.12.1"));
	cr_assert_not(is_cuda_library("libcudadebugger.so.1"));
	cr_assert_not(is_cuda_library("libcudnn.so.9"));
	cr_assert(is_nccl_library("libnccl.so.2") && is_nccl_library("libnccl-1a2b.so.2.27.3"));
	cr_assert(is_nccl_library("libtorch_cuda.so"));
	cr_assert_not(is_nccl_library("libnccl-net") || is_nccl_library("libnccltests.so"));
	cr_assert_not(is_nccl_library("libtorch_cuda_linalg.so"));
	cr_assert(mapped_path_deleted("/a/libcuda.so.1 (deleted)", &length) &&
	          length == strlen("/a/libcuda.so.1"));
	cr_assert_not(mapped_path_deleted("/a/libcuda.so.1", &length));
	cr_assert(length == strlen("/a/libcuda.so.1"));
	cr_assert_not(mapped_path_deleted(" (deleted)", &length));
}

Test(process_match, a_process_id_that_comes_again)
{
	const struct process_identity first = {7, 1000, 5}, later = {7, 2000, 6}, other = {8, 1000, 5},
	                              program = {7, 1000, 9}, unread = {7, 1000, 0};

	cr_assert(process_identity_same(&first, &first));
	cr_assert_not(process_identity_same(&first, &later));
	cr_assert_not(process_identity_same(&first, &other));
	cr_assert_not(process_identity_same(&first, &program)); /* exec */
	cr_assert(process_identity_same(&first, &unread) && process_identity_same(&unread, &program));
}

Test(process_match, arguments_of_calls)
{
	const struct call_arguments *launch = call_arguments_find("cuLaunchKernel");

	cr_assert(launch && launch->stream == CALL_PLACE_ARGUMENT + 8 &&
	          launch->object == CALL_PLACE_ARGUMENT);
	cr_assert_null(call_arguments_find("cuInit"));
	cr_assert_eq(launch->size, CALL_SIZE_NUMBERS);
	cr_assert_eq(call_arguments_find("cudaMemcpyAsync")->size, CALL_SIZE_ARGUMENT + 2);
	/* Every submission and synchronisation of a stream, whatever its place in the table, is found in it.
	 */
	for (size_t i = 0; i < cuda_function_count; i++) {
		const char *name = cuda_functions[i].name;

		if (!strncmp(name, "cu", 2) && (strstr(name, "Launch") || strstr(name, "StreamSync")) &&
		    !strstr(name, "HostFunc"))
			cr_assert_not_null(call_arguments_find(name), "%s", name);
		/* Every launch says with how many blocks; a graph cannot. */
		if (!strncmp(name, "cu", 2) && cuda_functions[i].class == CUDA_LAUNCH)
			cr_assert_neq(call_arguments_find(name)->size, CALL_SIZE_NONE, "%s", name);
	}
}

/* By the prototypes: the communicator is before the stream, which is last; what is counted comes with its
 * type. */
Test(process_match, arguments_of_nccl)
{
	bool creates;
	uint64_t cookie = nccl_call_cookie("ncclReduce", &creates);

	cr_assert_eq(NCCL_FUNCTION(cookie), WIRE_NCCL_REDUCE);
	cr_assert_eq(NCCL_COUNT(cookie), CALL_PLACE_ARGUMENT + 2);
	cr_assert_eq(NCCL_PEER(cookie), CALL_PLACE_ARGUMENT + 5);
	cr_assert_eq(NCCL_STREAM(cookie), CALL_PLACE_ARGUMENT + 7);
	cr_assert_not(creates);
	static const char *const operations[] = {
	    "ncclAllReduce", "ncclReduce", "ncclBroadcast", "ncclBcast", "ncclAllGather", "ncclReduceScatter",
	    "ncclAlltoAll",  "ncclGather", "ncclScatter",   "ncclSend",  "ncclRecv"};
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		cookie = nccl_call_cookie(operations[i], &creates);
		cr_assert(cookie && !creates, "%s", operations[i]);
		cr_assert_eq(NCCL_TYPE(cookie), NCCL_COUNT(cookie) + 1, "%s", operations[i]);
		cr_assert_eq(NCCL_STREAM(cookie), NCCL_COMM(cookie) + 1, "%s", operations[i]);
	}
	cr_assert(nccl_call_cookie("ncclCommInitRankConfig", &creates) && creates);
	cr_assert(nccl_call_cookie("ncclCommSplit", &creates) && creates);
	cr_assert(nccl_call_cookie("ncclCommDestroy", &creates) && !creates);
	cr_assert_eq(nccl_call_cookie("ncclCommCount", &creates), 0);
	cr_assert_eq(nccl_call_cookie("pncclAllReduce", &creates), 0, "the same place under another name");
}
