# Golden files: what the reports of known analyses look like. Read the difference before you commit it.

golden: $(BUILD)/unit-tests
	$(Q)WHYIDLE_GOLDEN_UPDATE=1 ./$(BUILD)/unit-tests --quiet --filter '*/golden_*'
	$(Q)git --no-pager diff --stat -- tests/golden 2>/dev/null || true

.PHONY: golden
