# The matrix of planted stalls: root, BPF, about a quarter of an hour. PROOF="-k disk" runs a part of it.
proof: $(BUILD)/whyidle sim
	$(Q)python3 tests/proof/run.py --build $(BUILD) $(PROOF)

.PHONY: proof
