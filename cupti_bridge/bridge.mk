# The library that is loaded into the target. Needs the C library only.

BRIDGE := $(BUILD)/libwhyidle_bridge.so
BRIDGE_SOURCES := $(wildcard cupti_bridge/*.c)
BRIDGE_OBJECTS := $(BRIDGE_SOURCES:%.c=$(BUILD)/pic/%.o)
# Those that need neither CUPTI nor a collector: the unit tests link them too.
BRIDGE_PURE_SOURCES := $(addprefix cupti_bridge/,call_table.c convert.c finalize.c name_table.c ring_writer.c)
BRIDGE_CFLAGS := $(BASE_CFLAGS) -I. -include cupti_bridge/glibc_floor.h -fPIC -fvisibility=hidden

$(BUILD)/pic/cupti_bridge/%.o: cupti_bridge/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BRIDGE_CFLAGS) $(CFLAGS) -c $< -o $@

# Never unloaded: CUPTI keeps pointers to its functions.
$(BRIDGE): $(BRIDGE_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,-soname,libwhyidle_bridge.so -Wl,-z,defs -Wl,-z,now -Wl,-z,nodelete $(LDFLAGS) $^ -lpthread -ldl -o $@

# Our declarations of CUPTI's binary interface against the toolkit's headers, where there are any.
CUDA_HOME ?= /usr/local/cuda
CUPTI_INCLUDES := $(CUDA_HOME)/include $(CUDA_HOME)/extras/CUPTI/include

check-abi:
ifeq ($(wildcard $(CUPTI_INCLUDES:%=%/cupti.h)),)
	@echo 'check-abi skipped: no CUPTI headers (set CUDA_HOME)'
else
	$(Q)$(CC) -std=gnu11 $(WARN) -I. $(CUPTI_INCLUDES:%=-isystem %) -fsyntax-only tests/abi/check_abi.c
	@echo 'check-abi passed'
endif

# Listens like the collector, runs a command, and prints the records of the bridges in it.
RING_DUMP := $(BUILD)/sim/ring_dump

$(RING_DUMP): tests/bridge/ring_dump.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) -I. $(CFLAGS) $< -o $@

# Programs and a CUPTI for the bridge's own tests, on the simulated GPU: no root, no GPU.
BRIDGE_TARGET := $(BUILD)/sim/bridge_target
FAKE_CUPTI := $(BUILD)/sim/fake_cupti.so

$(BRIDGE_TARGET): tests/bridge/target.c $(BUILD)/sim/lib/libcudart.so.13 $(BUILD)/sim/lib/libcuda.so.1
	$(call say,CC,$<)
	$(Q)$(CC) $(BASE_CFLAGS) -I. $(CFLAGS) -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/lib' $(filter-out %.h,$^) \
		-lpthread -o $@

$(FAKE_CUPTI): tests/bridge/fake_cupti.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) -I. $(CFLAGS) -fPIC -fvisibility=hidden -shared -Wl,-soname,fake_cupti.so $< -lpthread -o $@

bridge-test: $(BRIDGE) $(RING_DUMP) $(BRIDGE_TARGET) $(FAKE_CUPTI) $(BUILD)/sim/lib/libcupti.so.13
	$(Q)python3 tests/bridge/run.py $(BUILD)

.PHONY: check-abi bridge-test
-include $(BRIDGE_OBJECTS:.o=.d) $(RING_DUMP).d $(BRIDGE_TARGET).d
