# BPF programs: one object a subject, linked into one, then into a skeleton header.

# Ubuntu's /usr/sbin/bpftool is a wrapper that wants the running kernel's package: take a real one.
BPFTOOL ?= $(firstword $(wildcard /usr/lib/linux-tools-*/bpftool /usr/lib/linux-tools/*/bpftool) \
	$(wildcard /usr/sbin/bpftool /usr/bin/bpftool) bpftool)
BPF_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(shell uname -m)))
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 $(WARN) -D__TARGET_ARCH_$(BPF_ARCH) -Ivmlinux -Ibpf -I. -MMD -MP
BPF_SOURCES := $(wildcard bpf/*.bpf.c)
# The counters of the daemon are an object of their own: it loads them once and keeps them.
BPF_COUNTERS := $(BUILD)/bpf/counters.bpf.o
BPF_OBJECTS := $(filter-out $(BPF_COUNTERS),$(BPF_SOURCES:bpf/%.bpf.c=$(BUILD)/bpf/%.bpf.o))
SKELETON := $(BUILD)/gen/whyidle.skel.h
COUNTERS_SKELETON := $(BUILD)/gen/counters.skel.h

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c $< -o $@

$(BUILD)/bpf/whyidle.o: $(BPF_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(SKELETON): $(BUILD)/bpf/whyidle.o
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name whyidle_bpf > $@

# The step through "gen object" takes out what only the compiler knew, as for the other one.
$(COUNTERS_SKELETON): $(BPF_COUNTERS)
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen object $(BUILD)/bpf/counters.o $<
	$(Q)$(BPFTOOL) gen skeleton $(BUILD)/bpf/counters.o name counters_bpf > $@

# The same sources against the full header of the running kernel: do the trimmed types agree with the real ones?
KERNEL_BTF ?= /sys/kernel/btf/vmlinux
FULL_BPF_OBJECTS := $(BPF_SOURCES:bpf/%.bpf.c=$(BUILD)/bpf-full/%.bpf.o)

$(BUILD)/bpf-full/vmlinux.h:
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(BPFTOOL) btf dump file $(KERNEL_BTF) format c > $@

$(BUILD)/bpf-full/%.bpf.o: bpf/%.bpf.c bpf/common.bpf.h bpf/events.h bpf/settings.h $(BUILD)/bpf-full/vmlinux.h
	$(call say,BPF-FULL,$<)
	$(Q)$(CLANG) $(patsubst -Ivmlinux,-I$(BUILD)/bpf-full,$(BPF_CFLAGS)) -c $< -o $@

ifneq ($(wildcard $(KERNEL_BTF)),)
check-vmlinux: $(FULL_BPF_OBJECTS)
	@echo 'check-vmlinux: $(words $^) objects build against the full header of $(KERNEL_BTF)'
else
check-vmlinux:
	@echo 'check-vmlinux: skipped, no $(KERNEL_BTF)'
endif

# What each program costs the verifier.
VERISTAT ?= $(shell command -v veristat 2>/dev/null)
ifneq ($(VERISTAT),)
veristat: $(BUILD)/bpf/whyidle.o
	$(Q)$(VERISTAT) $<
else
veristat:
	@echo 'veristat: skipped, the program veristat is not installed'
endif

# The BPF source against the running kernel (root).
BPF_TEST := $(BUILD)/tests/bpf-source-test
BPF_TEST_OBJECTS := $(BUILD)/obj/tests/e2e/test_bpf_source.o $(BUILD)/obj/tests/e2e/bpf_recording.o
# The parts of userspace/ that it needs: this test can run while others do not build.
BPF_TEST_PARTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard userspace/collect/bpf_*.c userspace/collect/python_*.c \
	userspace/collect/pure_python_*.c userspace/collect/pure_call_arguments.c userspace/collect/pure_nccl_calls.c \
	userspace/collect/process_*.c userspace/collect/pure_process_match.c userspace/collect/data_names.c \
	userspace/collect/user_stacks.c userspace/collect/steal.c \
	userspace/trace/*.c userspace/symbols/*.c userspace/base/*.c) userspace/model/cuda_call.c)

# With frame pointers, because it looks at its own user stacks.
$(BUILD)/obj/tests/e2e/%.o: tests/e2e/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) -Iuserspace -I. $(CFLAGS) -fno-omit-frame-pointer -c $< -o $@

BPF_TEST_LIBRARY := $(BUILD)/tests/libmany_calls.so
$(BPF_TEST_LIBRARY): tests/e2e/many_calls.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(CFLAGS) -fPIC -shared $< -o $@

$(BPF_TEST): $(BPF_TEST_OBJECTS) $(BPF_TEST_PARTS)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -rdynamic $^ -lbpf -lelf -llzma -lz -lzstd $(DEMANGLER) -ldl -lpthread -o $@

bpf-test: $(BPF_TEST) $(BPF_TEST_LIBRARY)
	$(Q)./$(BPF_TEST)

# What recording costs.
BPF_BENCH := $(BUILD)/tests/bpf-source-bench

$(BUILD)/obj/tests/bench/%.o: tests/bench/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) -Iuserspace -I. $(CFLAGS) -c $< -o $@

$(BPF_BENCH): $(BUILD)/obj/tests/bench/bench_bpf_source.o $(BPF_TEST_PARTS)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $^ -lbpf -lelf -llzma -lz -lzstd $(DEMANGLER) -o $@

bpf-bench: $(BPF_BENCH)
	$(Q)./$(BPF_BENCH)

.PHONY: check-vmlinux veristat bpf-test bpf-bench
-include $(BPF_TEST_OBJECTS:.o=.d) $(BPF_TEST_LIBRARY:.so=.d) $(BUILD)/obj/tests/bench/bench_bpf_source.d
-include $(BPF_OBJECTS:.o=.d) $(BPF_COUNTERS:.o=.d)
