# The library that is loaded into the target. Needs the C library only.

BRIDGE := $(BUILD)/libwhyidle_bridge.so
BRIDGE_SOURCES := $(wildcard cupti_bridge/*.c)
BRIDGE_OBJECTS := $(BRIDGE_SOURCES:%.c=$(BUILD)/pic/%.o)
BRIDGE_CFLAGS := $(BASE_CFLAGS) -I. -fPIC -fvisibility=hidden

$(BUILD)/pic/cupti_bridge/%.o: cupti_bridge/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BRIDGE_CFLAGS) $(CFLAGS) -c $< -o $@

$(BRIDGE): $(BRIDGE_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,-soname,libwhyidle_bridge.so -Wl,-z,defs -Wl,-z,now $(LDFLAGS) $^ -lpthread -ldl -o $@

-include $(BRIDGE_OBJECTS:.o=.d)
