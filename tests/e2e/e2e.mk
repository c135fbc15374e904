# End-to-end tests: the program itself, real BPF, the simulated GPU. What a machine cannot run is skipped and counted.
e2e: $(BUILD)/whyidle sim
	$(Q)python3 tests/e2e/run.py --build $(BUILD)

.PHONY: e2e
