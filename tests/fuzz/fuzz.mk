# Fuzzers (clang's libFuzzer, package libclang-rt-dev). `make fuzz` runs each for FUZZ_SECONDS from a corpus that it
# keeps; `make fuzz-smoke` makes the same few thousand inputs each time; `make fuzz-readers` runs
# those of what others write into files and memory for FUZZ_READERS_SECONDS each, as many at once as there are
# processors, from what their _corpus programs make and tests/fuzz/corpus. What they find is left in $(BUILD)/fuzz and
# can be given to the fuzzer as its argument. `make fuzz-corpus` takes what `make fuzz` has learnt of those in FUZZ_KEPT
# into tests/fuzz/corpus, as few inputs as reach the same code.

FUZZ_SECONDS ?= 60
FUZZ_READERS_SECONDS ?= 60
FUZZ_READERS := fuzz_kineto fuzz_nsys fuzz_names fuzz_debug fuzz_python
FUZZ_KEPT := fuzz_kineto fuzz_nsys
FUZZ_CORPUS := tests/fuzz/corpus
FUZZ_CORPUS_LENGTH := 2048
FUZZERS := fuzz_session fuzz_ring fuzz_nsys fuzz_kineto fuzz_json fuzz_names fuzz_debug fuzz_python
FUZZ_CFLAGS := $(USER_CFLAGS) -O1 -g -fno-omit-frame-pointer \
	-fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_OBJECTS := $(patsubst %.c,$(BUILD)/fuzz/%.o,$(wildcard userspace/base/*.c userspace/trace/*.c \
	userspace/symbols/*.c \
	userspace/model/*.c userspace/import/*.c userspace/attribute/*.c userspace/collect/pure_*.c))
FUZZ_LIBRARIES := -lelf -llzma -lz -lzstd -lsqlite3 $(DEMANGLER) -lm

$(BUILD)/fuzz/%.o: %.c
	$(call say,CC-FUZZ,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -c $< -o $@

$(BUILD)/fuzz/userspace/model/wait.o: $(SYSCALL_TABLE)

# With a memory of its own in the place of that of another process.
$(BUILD)/fuzz/fuzz_python: $(BUILD)/fuzz/userspace/collect/python_code.o $(BUILD)/fuzz/userspace/collect/python_thread.o

FUZZ_FIXTURE_USERS := $(patsubst %,$(BUILD)/fuzz/tests/fuzz/%_corpus.o,fuzz_names fuzz_debug)
$(FUZZ_FIXTURE_USERS): FUZZ_CFLAGS += -DUNIT_FIXTURES='"$(FIXTURES)"'
$(FUZZ_FIXTURE_USERS): $(FIXTURE_FILES)

$(FUZZERS:%=$(BUILD)/fuzz/%): $(BUILD)/fuzz/%: $(BUILD)/fuzz/tests/fuzz/%.o $(FUZZ_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CLANG) -fsanitize=fuzzer,address,undefined $^ $(FUZZ_LIBRARIES) -o $@

$(FUZZERS:%=$(BUILD)/fuzz/%_corpus): $(BUILD)/fuzz/%_corpus: $(BUILD)/fuzz/tests/fuzz/%_corpus.o $(FUZZ_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CLANG) -fsanitize=address,undefined $^ $(FUZZ_LIBRARIES) -o $@

SMOKE_RUNS := 20000

FUZZ_LENGTH_fuzz_nsys := 4096
FUZZ_LENGTH_fuzz_debug := 8192
FUZZ_LENGTH_fuzz_python := 4096

# libelf 0.188 leaks a little on damaged files.
FUZZ_ENVIRONMENT = $(if $(filter fuzz_names,$*),ASAN_OPTIONS=detect_leaks=0)
FUZZ_OPTIONS = -max_len=$(or $(FUZZ_LENGTH_$*),65536) -rss_limit_mb=1024 -verbosity=0 \
	-artifact_prefix=$(BUILD)/fuzz/$*-

$(FUZZERS:%=run-%): run-%: $(BUILD)/fuzz/% $(BUILD)/fuzz/%_corpus
	$(Q)mkdir -p $(BUILD)/fuzz/$*-corpus
	$(Q)$(BUILD)/fuzz/$*_corpus $(BUILD)/fuzz/$*-corpus
	$(Q)$(FUZZ_ENVIRONMENT) $(BUILD)/fuzz/$* $(FUZZ_OPTIONS) -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 $(BUILD)/fuzz/$*-corpus \
		$(wildcard $(FUZZ_CORPUS)/$*)

$(FUZZERS:%=smoke-%): smoke-%: $(BUILD)/fuzz/% $(BUILD)/fuzz/%_corpus
	$(Q)rm -rf $(BUILD)/fuzz/$*-seeds && mkdir -p $(BUILD)/fuzz/$*-seeds
	$(Q)$(BUILD)/fuzz/$*_corpus $(BUILD)/fuzz/$*-seeds
	$(Q)$(FUZZ_ENVIRONMENT) $(BUILD)/fuzz/$* $(FUZZ_OPTIONS) -seed=1 -runs=$(SMOKE_RUNS) $(BUILD)/fuzz/$*-seeds 2> $(BUILD)/fuzz/$*.log || \
		{ cat $(BUILD)/fuzz/$*.log; exit 1; }
	$(Q)echo '$*: $(SMOKE_RUNS) inputs'

# The seed differs from run to run; the log has it.
$(FUZZ_READERS:%=reader-%): reader-%: $(BUILD)/fuzz/% $(BUILD)/fuzz/%_corpus
	$(Q)rm -rf $(BUILD)/fuzz/$*-found && mkdir -p $(BUILD)/fuzz/$*-found
	$(Q)$(BUILD)/fuzz/$*_corpus $(BUILD)/fuzz/$*-found
	$(Q)$(FUZZ_ENVIRONMENT) $(BUILD)/fuzz/$* $(FUZZ_OPTIONS) -max_total_time=$(FUZZ_READERS_SECONDS) -print_final_stats=1 \
		$(BUILD)/fuzz/$*-found $(wildcard $(FUZZ_CORPUS)/$*) > $(BUILD)/fuzz/$*.log 2>&1 || { cat $(BUILD)/fuzz/$*.log; exit 1; }
	$(Q)echo "$*: $$(sed -n 's/stat::number_of_executed_units: *//p' $(BUILD)/fuzz/$*.log) inputs in $(FUZZ_READERS_SECONDS) s"

$(FUZZ_KEPT:%=corpus-%): corpus-%: $(BUILD)/fuzz/% $(BUILD)/fuzz/%_corpus
	$(Q)rm -rf $(BUILD)/fuzz/$*-merged && mkdir -p $(BUILD)/fuzz/$*-merged $(BUILD)/fuzz/$*-corpus $(FUZZ_CORPUS)/$*
	$(Q)$(BUILD)/fuzz/$*_corpus $(BUILD)/fuzz/$*-corpus
	$(Q)$(BUILD)/fuzz/$* -set_cover_merge=1 -use_counters=0 -max_len=$(FUZZ_CORPUS_LENGTH) -verbosity=0 $(BUILD)/fuzz/$*-merged \
		$(FUZZ_CORPUS)/$* $(BUILD)/fuzz/$*-corpus 2> $(BUILD)/fuzz/$*.log || { cat $(BUILD)/fuzz/$*.log; exit 1; }
	$(Q)find $(FUZZ_CORPUS)/$* -type f ! -name 'shape-*' -delete
	$(Q)for input in $(BUILD)/fuzz/$*-merged/*; do \
		sum=$$(sha256sum $$input); cp $$input $(FUZZ_CORPUS)/$*/$${sum%"$${sum#????????????}"}; done
	$(Q)du -sh --apparent-size $(FUZZ_CORPUS)/$*

fuzz: $(FUZZERS:%=run-%)
fuzz-corpus: $(FUZZ_KEPT:%=corpus-%)

FUZZ_SMOKED := $(filter-out $(FUZZ_READERS),$(FUZZERS))

# fuzz-test is both, so that no processor is idle while the last reader has its minute.
ifneq ($(wildcard $(shell $(CLANG) -print-resource-dir 2>/dev/null)/lib/*/libclang_rt.fuzzer*.a),)
FUZZ_PROGRAMS := $(foreach fuzzer,$(FUZZERS),$(BUILD)/fuzz/$(fuzzer) $(BUILD)/fuzz/$(fuzzer)_corpus)
fuzz-smoke: $(FUZZ_SMOKED:%=smoke-%)
	$(Q)echo 'fuzz-smoke: $(words $^) passed, 0 failed'
fuzz-readers:
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) -k $(FUZZ_READERS:%=reader-%)
	$(Q)echo 'fuzz-readers: $(words $(FUZZ_READERS)) passed, 0 failed'
fuzz-test:
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) -k $(FUZZ_READERS:%=reader-%) $(FUZZ_SMOKED:%=smoke-%)
	$(Q)echo 'fuzz-test: $(words $(FUZZERS)) passed, 0 failed'
else
fuzz-smoke fuzz-readers fuzz-test:
	$(Q)echo 'SKIP $@: clang has no libFuzzer here (package libclang-rt-dev)'
	$(Q)echo '$@: 0 passed, 0 failed, 1 skipped'
endif

.PHONY: fuzz fuzz-smoke fuzz-readers fuzz-test fuzz-corpus $(FUZZERS:%=run-%) $(FUZZERS:%=smoke-%) $(FUZZ_READERS:%=reader-%) \
	$(FUZZ_KEPT:%=corpus-%)
-include $(FUZZ_OBJECTS:.o=.d) $(FUZZERS:%=$(BUILD)/fuzz/tests/fuzz/%.d) $(FUZZERS:%=$(BUILD)/fuzz/tests/fuzz/%_corpus.d)
