# The matrix of planted stalls: root, BPF, about a quarter of an hour. PROOF="-k disk" runs a part of it.
proof: $(BUILD)/whyidle sim $(BUILD)/unit-tests
	$(Q)rm -f $(BUILD)/synthetic.json
	$(Q)WHYIDLE_SYNTHETIC=$(BUILD)/synthetic.json $(BUILD)/unit-tests --filter 'synthetic/*' --quiet
	$(Q)python3 tests/proof/run.py --build $(BUILD) $(PROOF)

# Planted ranks on 2, 4 and 16 simulated GPUs, some minutes. PROOF="--ranks 2" runs a part of it.
proof-ranks: $(BUILD)/whyidle sim $(BUILD)/shift_session
	$(Q)python3 tests/proof/ranks.py --build $(BUILD) $(PROOF)

# The same with real PyTorch programs on a GPU machine, about five minutes; WORKLOADS is the folder of planted workloads.
WORKLOADS ?= ../shared/workloads
proof-gpu: $(BUILD)/whyidle
	$(Q)python3 tests/gpu/proof_gpu.py --whyidle $(BUILD)/whyidle --workloads $(WORKLOADS) --write docs $(PROOF)

# How each cause code was tested: the table in docs/causes.md.
causes:
	$(Q)python3 tests/proof/causes.py

.PHONY: causes proof proof-ranks proof-gpu
