# Fuzzers (clang's libFuzzer, package libclang-rt-14-dev or that of the clang at hand). `make fuzz` runs each of
# them for FUZZ_SECONDS; what they find is left in $(BUILD)/fuzz and can be given to the fuzzer as its argument.

FUZZ_SECONDS ?= 60
FUZZERS := fuzz_session
FUZZ_CFLAGS := $(USER_CFLAGS) -O1 -g -fno-omit-frame-pointer \
	-fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_OBJECTS := $(patsubst %.c,$(BUILD)/fuzz/%.o,$(wildcard userspace/base/*.c userspace/trace/*.c))

$(BUILD)/fuzz/%.o: %.c
	$(call say,CC-FUZZ,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -c $< -o $@

$(FUZZERS:%=$(BUILD)/fuzz/%): $(BUILD)/fuzz/%: $(BUILD)/fuzz/tests/fuzz/%.o $(FUZZ_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CLANG) -fsanitize=fuzzer,address,undefined $^ -lz -lzstd -o $@

$(FUZZERS:%=$(BUILD)/fuzz/%_corpus): $(BUILD)/fuzz/%_corpus: $(BUILD)/fuzz/tests/fuzz/%_corpus.o $(FUZZ_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CLANG) -fsanitize=address,undefined $^ -lz -lzstd -o $@

$(FUZZERS:%=run-%): run-%: $(BUILD)/fuzz/% $(BUILD)/fuzz/%_corpus
	$(Q)mkdir -p $(BUILD)/fuzz/$*-corpus
	$(Q)$(BUILD)/fuzz/$*_corpus $(BUILD)/fuzz/$*-corpus
	$(Q)$(BUILD)/fuzz/$* -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -rss_limit_mb=1024 -verbosity=0 \
		-print_final_stats=1 -artifact_prefix=$(BUILD)/fuzz/$*- $(BUILD)/fuzz/$*-corpus

fuzz: $(FUZZERS:%=run-%)

.PHONY: fuzz $(FUZZERS:%=run-%)
-include $(FUZZ_OBJECTS:.o=.d) $(FUZZERS:%=$(BUILD)/fuzz/tests/fuzz/%.d) $(FUZZERS:%=$(BUILD)/fuzz/tests/fuzz/%_corpus.d)
