# The matrix of planted stalls: root, BPF, about a quarter of an hour. PROOF="-k disk" runs a part of it.
proof: $(BUILD)/whyidle sim $(BUILD)/unit-tests
	$(Q)rm -f $(BUILD)/synthetic.json
	$(Q)WHYIDLE_SYNTHETIC=$(BUILD)/synthetic.json $(BUILD)/unit-tests --filter 'synthetic/*' --quiet
	$(Q)python3 tests/proof/run.py --build $(BUILD) $(PROOF)

# Planted ranks on 2, 4 and 16 simulated GPUs, some minutes. PROOF="--ranks 2" runs a part of it.
proof-ranks: $(BUILD)/whyidle sim $(BUILD)/shift_session
	$(Q)python3 tests/proof/ranks.py --build $(BUILD) $(PROOF)

.PHONY: proof proof-ranks
