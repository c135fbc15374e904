# Benchmarks: they print figures and judge nothing.

BENCH_RECORDS ?= 4000000
SESSION_BENCH_OBJECTS := $(BUILD)/bench/session_bench.o \
	$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard userspace/base/*.c userspace/trace/*.c))

$(BUILD)/bench/%.o: tests/bench/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) $(CFLAGS) -c $< -o $@

$(BUILD)/bench/session_bench: $(SESSION_BENCH_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lz -lzstd -o $@

bench-session: $(BUILD)/bench/session_bench
	$(Q)$< $(BUILD)/bench/session_bench.whyidle $(BENCH_RECORDS)

# The whole program under some hundred thousand events a second (root, BPF).
THROUGHPUT ?= --seconds 10 --rounds 2
bench-throughput: $(BUILD)/whyidle sim
	$(Q)python3 tests/bench/throughput.py --build $(BUILD) $(THROUGHPUT)

.PHONY: bench-session bench-throughput
-include $(BUILD)/bench/session_bench.d
