// SPDX-License-Identifier: GPL-2.0-only
/*
 * Definitions that the other files refer to: settings (constant once loaded), loss counters, and the license
 * of the linked object.
 */
#include "common.bpf.h"

const volatile struct bpf_settings settings = {};
__u64 losses[WIRE_LOSS_COUNT] = {};
__u64 recording_end_ns = 0;
__u32 stacks_off = 0;
__u64 stack_bytes_sent = 0;

char program_license[] SEC("license") = "GPL";
