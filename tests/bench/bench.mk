# Benchmarks: they print figures and judge nothing.

BENCH_RECORDS ?= 4000000
SESSION_BENCHES := $(BUILD)/bench/session_bench $(BUILD)/bench/session_steps
SESSION_BENCH_PARTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard userspace/base/*.c userspace/trace/*.c))

$(BUILD)/bench/%.o: tests/bench/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) $(CFLAGS) -c $< -o $@

$(SESSION_BENCHES): $(BUILD)/bench/%: $(BUILD)/bench/%.o $(SESSION_BENCH_PARTS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lz -lzstd -o $@

bench-session: $(BUILD)/bench/session_bench
	$(Q)$< $(BUILD)/bench/session_bench.whyidle $(BENCH_RECORDS)

# How long a report of a large session takes, and of one twice as large.
ANALYSIS ?= --steps 200000
bench-analysis: $(BUILD)/whyidle $(BUILD)/bench/session_steps
	$(Q)python3 tests/bench/analysis.py --build $(BUILD) $(ANALYSIS)

# The whole program under some hundred thousand events a second (root, BPF).
THROUGHPUT ?= --seconds 10 --rounds 2
bench-throughput: $(BUILD)/whyidle sim
	$(Q)python3 tests/bench/throughput.py --build $(BUILD) $(THROUGHPUT)

# Opening traces of the PyTorch profiler: IMPORTS='TRACE...', or one of 2.3 GB is made up.
IMPORTS ?= --operations 5000000
$(BUILD)/bench/make_kineto: $(BUILD)/bench/make_kineto.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@

bench-import: $(BUILD)/whyidle $(BUILD)/bench/make_kineto
	$(Q)python3 tests/bench/imports.py --build $(BUILD) $(IMPORTS)

# Writing a Perfetto trace: events a second of CPU time.
bench-export: $(BUILD)/whyidle $(BUILD)/bench/make_kineto $(BUILD)/bench/session_steps
	$(Q)python3 tests/bench/exports.py --build $(BUILD) $(EXPORTS)

# What record --locks adds to calls of the C library (root, BPF).
$(BUILD)/bench/lock_calls: $(BUILD)/bench/lock_calls.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lpthread -o $@

bench-locks: $(BUILD)/whyidle $(BUILD)/bench/lock_calls
	$(Q)python3 tests/bench/locks.py --build $(BUILD) $(LOCKS)

# A page of 200,000 gaps in headless Chromium: size, first paint, zoom.
bench-html: $(BUILD)/whyidle
	$(Q)python3 tests/bench/html.py --build $(BUILD) $(HTML)

.PHONY: bench-export bench-html bench-session bench-analysis bench-import bench-locks bench-throughput
-include $(SESSION_BENCHES:=.d) $(BUILD)/bench/make_kineto.d $(BUILD)/bench/lock_calls.d
