# Fuzzers (clang's libFuzzer, package libclang-rt-dev). `make fuzz` runs each for FUZZ_SECONDS from a corpus that it
# keeps; `make fuzz-smoke` makes the same few thousand inputs each time. What they find is left in $(BUILD)/fuzz and
# can be given to the fuzzer as its argument.

FUZZ_SECONDS ?= 60
FUZZERS := fuzz_session fuzz_ring fuzz_nsys fuzz_kineto fuzz_json
FUZZ_CFLAGS := $(USER_CFLAGS) -O1 -g -fno-omit-frame-pointer \
	-fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_OBJECTS := $(patsubst %.c,$(BUILD)/fuzz/%.o,$(wildcard userspace/base/*.c userspace/trace/*.c \
	userspace/symbols/*.c \
	userspace/model/*.c userspace/import/*.c userspace/attribute/*.c userspace/collect/pure_*.c))
FUZZ_LIBRARIES := -lz -lzstd -lsqlite3 $(DEMANGLER) -lm

$(BUILD)/fuzz/%.o: %.c
	$(call say,CC-FUZZ,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -c $< -o $@

$(BUILD)/fuzz/userspace/model/wait.o: $(SYSCALL_TABLE)

$(FUZZERS:%=$(BUILD)/fuzz/%): $(BUILD)/fuzz/%: $(BUILD)/fuzz/tests/fuzz/%.o $(FUZZ_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CLANG) -fsanitize=fuzzer,address,undefined $^ $(FUZZ_LIBRARIES) -o $@

$(FUZZERS:%=$(BUILD)/fuzz/%_corpus): $(BUILD)/fuzz/%_corpus: $(BUILD)/fuzz/tests/fuzz/%_corpus.o $(FUZZ_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CLANG) -fsanitize=address,undefined $^ $(FUZZ_LIBRARIES) -o $@

# Opening a database takes its time.
SMOKE_RUNS = $(if $(filter fuzz_nsys,$*),3000,20000)

FUZZ_OPTIONS = -max_len=65536 -rss_limit_mb=1024 -verbosity=0 -artifact_prefix=$(BUILD)/fuzz/$*-

$(FUZZERS:%=run-%): run-%: $(BUILD)/fuzz/% $(BUILD)/fuzz/%_corpus
	$(Q)mkdir -p $(BUILD)/fuzz/$*-corpus
	$(Q)$(BUILD)/fuzz/$*_corpus $(BUILD)/fuzz/$*-corpus
	$(Q)$(BUILD)/fuzz/$* $(FUZZ_OPTIONS) -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 $(BUILD)/fuzz/$*-corpus

$(FUZZERS:%=smoke-%): smoke-%: $(BUILD)/fuzz/% $(BUILD)/fuzz/%_corpus
	$(Q)rm -rf $(BUILD)/fuzz/$*-seeds && mkdir -p $(BUILD)/fuzz/$*-seeds
	$(Q)$(BUILD)/fuzz/$*_corpus $(BUILD)/fuzz/$*-seeds
	$(Q)$(BUILD)/fuzz/$* $(FUZZ_OPTIONS) -seed=1 -runs=$(SMOKE_RUNS) $(BUILD)/fuzz/$*-seeds 2> $(BUILD)/fuzz/$*.log || \
		{ cat $(BUILD)/fuzz/$*.log; exit 1; }
	$(Q)echo '$*: $(SMOKE_RUNS) inputs'

fuzz: $(FUZZERS:%=run-%)

ifneq ($(wildcard $(shell $(CLANG) -print-resource-dir 2>/dev/null)/lib/*/libclang_rt.fuzzer*.a),)
fuzz-smoke: $(FUZZERS:%=smoke-%)
else
fuzz-smoke:
	$(Q)echo 'SKIP fuzz-smoke: clang has no libFuzzer here (package libclang-rt-dev)'
endif

.PHONY: fuzz fuzz-smoke $(FUZZERS:%=run-%) $(FUZZERS:%=smoke-%)
-include $(FUZZ_OBJECTS:.o=.d) $(FUZZERS:%=$(BUILD)/fuzz/tests/fuzz/%.d) $(FUZZERS:%=$(BUILD)/fuzz/tests/fuzz/%_corpus.d)
