# Attaching to running processes, on the simulated GPU: what the end-to-end tests of it start.
ATTACH_TOOL := $(BUILD)/sim/attach_tool
ATTACH_TARGET := $(BUILD)/sim/attach_target

$(ATTACH_TOOL): tests/inject/attach_tool.c $(USER_ARCHIVE) $(BUILD)/obj/bridge_blob.o
	$(call say,CC,$<)
	$(Q)$(CC) $(USER_CFLAGS) $(CFLAGS) $(LDFLAGS) $(filter-out %.h,$^) $(LIBRARIES) $(SYSTEM_LIBRARIES) -o $@

$(ATTACH_TARGET): tests/inject/attach_target.c $(SIM_RUNTIME) $(SIM_CUDA)
	$(call say,CC,$<)
	$(Q)$(CC) $(BASE_CFLAGS) -I. $(CFLAGS) $(SIM_RPATH)'$$ORIGIN/lib' $(filter-out %.h,$^) -lpthread -o $@

sim: $(ATTACH_TOOL) $(ATTACH_TARGET)
-include $(ATTACH_TOOL).d $(ATTACH_TARGET).d
