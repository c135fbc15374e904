# End-to-end tests: the program itself, real BPF, the simulated GPU. What a machine cannot run is skipped and counted.
e2e: $(BUILD)/whyidle sim $(BUILD)/shift_session
	$(Q)python3 tests/e2e/run.py --build $(BUILD)

.PHONY: e2e

# Puts a session on another clock.
SHIFT_SESSION := $(BUILD)/shift_session
$(SHIFT_SESSION): tests/e2e/shift_session.c $(USER_ARCHIVE)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) $(CFLAGS) $(LDFLAGS) $^ -lzstd -lz $(SYSTEM_LIBRARIES) -o $@
