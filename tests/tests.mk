# Tests: unit (no root, no GPU), end-to-end (root, real BPF, simulated GPU).

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

# Parts of the bridge that are pure enough to be tested without CUPTI.
UNIT_BRIDGE_OBJECTS := $(patsubst %.c,$(BUILD)/san/%.o,$(wildcard cupti_bridge/convert.c cupti_bridge/ring_writer.c))

$(BUILD)/unit-tests: $(UNIT_OBJECTS) $(PURE_OBJECTS) $(UNIT_BRIDGE_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SANITIZE) $^ -lcriterion -lelf -lz -lzstd -ljansson $(SYSTEM_LIBRARIES) -o $@

unit: $(BUILD)/unit-tests
	$(Q)./$(BUILD)/unit-tests --quiet

.PHONY: unit
-include $(UNIT_OBJECTS:.o=.d)
