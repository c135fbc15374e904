# Tests: unit (no root, no GPU), end-to-end (root, real BPF, simulated GPU). docs/testing.md describes the tiers.

UNIT_SOURCES := $(wildcard tests/unit/*.c)
UNIT_OBJECTS := $(UNIT_SOURCES:%.c=$(BUILD)/san/%.o)

$(BUILD)/san/tests/%.o: tests/%.c
	$(call say,CC-SAN,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -O1 -g $(SANITIZE) -c $< -o $@

# Pure parts of the bridge are tested here as well.
$(BUILD)/san/cupti_bridge/%.o: cupti_bridge/%.c
	$(call say,CC-SAN,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) -I. -O1 -g $(SANITIZE) -c $< -o $@

# Parts of the bridge that need no CUPTI.
UNIT_BRIDGE_OBJECTS := $(patsubst %.c,$(BUILD)/san/%.o,$(BRIDGE_PURE_SOURCES))

# ELF files to look for names in: with all symbols, stripped, and as Fedora has them, with those that .dynsym lacks
# compressed inside.
FIXTURES := $(BUILD)/fixtures
FIXTURE_FILES := $(addprefix $(FIXTURES)/,names.so names-stripped.so names-mini.so names-cxx.so) \
	$(patsubst %,$(FIXTURES)/inlined-%.so,2 4 5 64 gz unoptimised whole)

$(FIXTURES)/names.so: tests/unit/fixtures/names.c
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -O2 -g -fomit-frame-pointer -fPIC -shared -Wl,--build-id $< -o $@

$(FIXTURES)/names-cxx.so: tests/unit/fixtures/names.cc
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -O2 -g -fPIC -shared -Wl,--build-id $< -o $@

# Debug information of each kind: versions 2 to 5, of 64 bits, compressed, of all files in one (with references between
# units).
$(FIXTURES)/inlined-2.so: FIXTURE_CFLAGS := -O2 -gdwarf-2
$(FIXTURES)/inlined-4.so: FIXTURE_CFLAGS := -O2 -gdwarf-4
$(FIXTURES)/inlined-5.so: FIXTURE_CFLAGS := -O2 -gdwarf-5
$(FIXTURES)/inlined-64.so: FIXTURE_CFLAGS := -O2 -gdwarf-5 -gdwarf64
$(FIXTURES)/inlined-gz.so: FIXTURE_CFLAGS := -O2 -gdwarf-5 -gz
$(FIXTURES)/inlined-unoptimised.so: FIXTURE_CFLAGS := -O0 -g
$(FIXTURES)/inlined-whole.so: FIXTURE_CFLAGS := -O2 -g -flto -ffunction-sections -Wl,--gc-sections
$(FIXTURES)/inlined-%.so: tests/unit/fixtures/inlined.cc
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(FIXTURE_CFLAGS) -fPIC -shared -Wl,--build-id $< -o $@

$(FIXTURES)/names-stripped.so: $(FIXTURES)/names.so
	$(Q)strip $< -o $@

$(FIXTURES)/names-mini.so: $(FIXTURES)/names.so $(FIXTURES)/names-stripped.so
	$(Q)objcopy --strip-debug --keep-symbol=fixture_local $< $(FIXTURES)/names-inner
	$(Q)xz -c $(FIXTURES)/names-inner > $(FIXTURES)/names-inner.xz
	$(Q)objcopy --add-section .gnu_debugdata=$(FIXTURES)/names-inner.xz $(FIXTURES)/names-stripped.so $@

FIXTURE_TESTS := $(addprefix $(BUILD)/san/tests/unit/,test_binary.o test_cfi.o test_debug_info.o test_resolve.o)
$(FIXTURE_TESTS): USER_CFLAGS += -DUNIT_FIXTURES='"$(FIXTURES)"'
$(FIXTURE_TESTS): $(FIXTURE_FILES)

$(BUILD)/unit-tests: $(UNIT_OBJECTS) $(PURE_OBJECTS) $(UNIT_BRIDGE_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SANITIZE) $^ -lcriterion -ldw -lelf -llzma -lz -lzstd -ljansson -lsqlite3 $(DEMANGLER) $(SYSTEM_LIBRARIES) -o $@

unit: $(BUILD)/unit-tests
	$(Q)./$(BUILD)/unit-tests

# Versions of CPython that this machine does not have, for tests of Python frames: Debian's packages, unpacked below the
# build folder (network; tests/pythons.py).
PYTHONS ?= 3.14
pythons:
	$(Q)python3 tests/pythons.py $(BUILD)/pythons $(PYTHONS)

# The scripts of tests/gpu with stand-ins for what they run: no GPU.
gpu-scripts-test:
	$(Q)python3 tests/gpu/test_scripts.py

# Everything is built first, as many at once as there are processors. Then every suite runs, also after one has failed; the
# last line sums them up. Suites in TEST_SUITES run alone, those in TEST_SUITES_BESIDE judge no times: they share the machine.
TEST_SUITES := unit sim-test bridge-test bpf-test e2e gpu-scripts-test fuzz-test
TEST_SUITES_BESIDE := mutants-check check-abi check-vmlinux
TEST_JOBS := $(shell nproc)
TEST_PROGRAMS = all sim $(BUILD)/unit-tests $(BUILD)/shift_session $(SIM_TEST) $(SIM_TEST_INJECTED) $(BPF_TEST) \
	$(BPF_TEST_LIBRARY) $(RING_DUMP) $(BRIDGE_TARGET) $(FAKE_CUPTI) $(FUZZ_PROGRAMS)

test:
	$(Q)./.ci/deps
	$(Q)$(MAKE) --no-print-directory pythons || echo 'the tests of other versions of Python are skipped'
	$(Q)$(MAKE) --no-print-directory -j$(TEST_JOBS) $(TEST_PROGRAMS)
	$(Q)failed=; begin=$$(date +%s); \
	echo "== $(TEST_SUITES_BESIDE)"; \
	$(MAKE) --no-print-directory -j$(TEST_JOBS) -k --output-sync=target $(TEST_SUITES_BESIDE) || failed=" $(TEST_SUITES_BESIDE)"; \
	for suite in $(TEST_SUITES); do \
		echo "== $$suite (after $$(($$(date +%s) - begin)) s)"; \
		$(MAKE) --no-print-directory $$suite || failed="$$failed $$suite"; \
	done; \
	echo "== $$(($$(date +%s) - begin)) s"; \
	if [ -n "$$failed" ]; then echo "FAILED:$$failed"; exit 1; fi; echo 'all suites passed'

demo:
	$(Q)./.ci/deps
	$(Q)$(MAKE) --no-print-directory all sim
	$(Q)./tests/demo.sh $(BUILD)

.PHONY: unit pythons gpu-scripts-test test demo
-include $(UNIT_OBJECTS:.o=.d)
-include $(UNIT_BRIDGE_OBJECTS:.o=.d)
