# Style and static checks. What they need is no part of `make deps`: a tool that is missing is said and skipped.

# Versions of clang's tools differ in what they find and how they write macros and comments: only this one judges.
CLANG_TOOLS  := 14
clang_tool    = $(shell for program in $(1)-$(CLANG_TOOLS) $(1); do \
	$$program --version 2>/dev/null | grep -q 'version $(CLANG_TOOLS)\.' && command -v $$program && break; done)
LINT_FORMAT  := $(call clang_tool,clang-format)
LINT_TIDY    := $(call clang_tool,clang-tidy)
LINT_SHELL   := $(shell command -v shellcheck 2>/dev/null)
LINT_C       := $(sort $(wildcard $(foreach depth,* */* */*/* */*/*/* */*/*/*/*,$(depth:%=%.c) $(depth:%=%.h))))
LINT_C       := $(filter-out build%,$(LINT_C))
LINT_SCRIPTS := .ci/deps .ci/run $(sort $(wildcard tests/*.sh tests/*/*.sh))
LINT_PYTHON  := $(sort $(wildcard tests/*/*.py tests/*/*/*.py tests/*/*/*/*.py))
# The program, the bridge and the simulated GPU; each in a run of its own, for the analyzer takes state along.
TIDY_SOURCES := $(filter userspace/% cupti_bridge/% tests/sim/%,$(filter %.c,$(LINT_C)))
TIDY_STAMPS  := $(TIDY_SOURCES:%=$(BUILD)/lint/%.tidy)

lint: lint-format lint-tidy lint-shell lint-python

lint-format:
ifneq ($(LINT_FORMAT),)
	$(Q)$(LINT_FORMAT) --dry-run -Werror $(LINT_C)
	@echo 'lint-format: $(words $(LINT_C)) files'
else
	@echo 'lint-format: skipped, clang-format $(CLANG_TOOLS) is not installed'
endif

lint-tidy:
ifneq ($(LINT_TIDY),)
lint-tidy: $(TIDY_STAMPS)
	@echo 'lint-tidy: $(words $(TIDY_SOURCES)) files'
else
	@echo 'lint-tidy: skipped, clang-tidy $(CLANG_TOOLS) is not installed'
endif

# Copies of the skeletons in which nothing is looked for: bpftool wrote them.
LINT_SKELETONS := $(patsubst $(BUILD)/gen/%,$(BUILD)/lint/gen/%,$(SKELETON) $(COUNTERS_SKELETON))
$(LINT_SKELETONS): $(BUILD)/lint/gen/%: $(BUILD)/gen/%
	$(Q)mkdir -p $(@D)
	$(Q){ echo '/* NOLINTBEGIN */'; cat $<; echo '/* NOLINTEND */'; } > $@

$(BUILD)/lint/%.c.tidy: %.c .clang-tidy $(filter %.h,$(LINT_C)) | $(LINT_SKELETONS) $(SYSCALL_TABLE)
	$(call say,TIDY,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINT_TIDY) --quiet $< -- -I$(BUILD)/lint/gen $(filter-out -MMD -MP $(WARN),$(USER_CFLAGS)) \
		2> $@.log || { cat $@.log; exit 1; }
	$(Q)touch $@

lint-shell:
ifneq ($(LINT_SHELL),)
	$(Q)$(LINT_SHELL) $(LINT_SCRIPTS)
	@echo 'lint-shell: $(words $(LINT_SCRIPTS)) scripts'
else
	@echo 'lint-shell: skipped, the program shellcheck is not installed'
endif

lint-python:
	$(Q)PYTHONPYCACHEPREFIX=$(BUILD)/lint/python python3 -m py_compile $(LINT_PYTHON)
	@echo 'lint-python: $(words $(LINT_PYTHON)) scripts'

# Writes all C files anew, as .clang-format wants them.
format:
ifneq ($(LINT_FORMAT),)
	$(Q)$(LINT_FORMAT) -i $(LINT_C)
else
	@echo 'format: needs clang-format $(CLANG_TOOLS)' >&2; exit 1
endif

.PHONY: lint lint-format lint-tidy lint-shell lint-python format
