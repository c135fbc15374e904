# Mutations: each breaks one rule of attribution, and the unit test that is named for it must fail. Some minutes.
# MUTANTS="-k lock" runs a part of them.
mutants:
	$(Q)python3 tests/mutants/run.py --build $(BUILD) $(MUTANTS)

# Whether the table of them still fits the sources.
mutants-check:
	$(Q)python3 tests/mutants/run.py --check

.PHONY: mutants mutants-check
