# whyidle: why was the GPU idle?  `make demo` and `make test` are where to start; `make help` lists the rest.
#
#   V=1       show commands          STATIC=1  build/whyidle needs only the C library
#   CC=clang  another compiler       BUILD=dir everything made goes here

BUILD    ?= build
CLANG    ?= clang
CC       := $(if $(filter default,$(origin CC)),gcc,$(CC))
PREFIX   ?= /usr/local
DOCUMENTS = $(PREFIX)/share/doc/whyidle
UNITS     = $(PREFIX)/lib/systemd/system
VERSION  := $(shell cat userspace/version 2>/dev/null || echo 0)

Q        := $(if $(V),,@)
say       = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(2)')

WARN     := -Wall -Wextra -Werror
CFLAGS   ?= -O2 -g
BASE_CFLAGS := -std=gnu11 $(WARN) -D_GNU_SOURCE -fno-strict-aliasing -MMD -MP
USER_CFLAGS := $(BASE_CFLAGS) -Iuserspace -I. -I$(BUILD)/gen -DWHYIDLE_VERSION='"$(VERSION)"'
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

all: $(BUILD)/whyidle

include bpf/bpf.mk
include cupti_bridge/bridge.mk
include userspace/userspace.mk
include tests/sim/sim.mk
include tests/tests.mk
include tests/inject/inject.mk
include tests/e2e/e2e.mk
include tests/proof/proof.mk
include tests/golden/golden.mk
include tests/mutants/mutants.mk
include tests/fuzz/fuzz.mk
include tests/bench/bench.mk
include tests/lint.mk

help:
	@echo 'make demo       explain a starved training loop on a simulated GPU (root, no GPU needed)'
	@echo 'make test       every test that this machine can run'
	@echo 'make            build $(BUILD)/whyidle'
	@echo 'make deps       install the packages that are missing (Debian, Ubuntu)'
	@echo 'make install    the program, manual page, completions, documents, systemd unit to $$(DESTDIR)$(PREFIX)'
	@echo 'make uninstall  takes them away again'
	@echo 'make proof      planted stalls against the reports: docs/proof.md (root, a quarter of an hour)'
	@echo 'make lint       style and static checks, as far as their tools are installed'
	@echo 'make clean      remove $(BUILD)'
	@echo
	@echo 'parts of make test:  $(TEST_SUITES_BESIDE) $(TEST_SUITES)'
	@echo 'others:              sim golden mutants format fuzz bench-session bpf-bench veristat'
	@echo 'variables:           V=1 CC=clang STATIC=1 BUILD=folder PREFIX=folder DESTDIR=folder'

deps:
	$(Q)./.ci/deps

install: all
	$(Q)install -D -m 755 $(BUILD)/whyidle $(DESTDIR)$(PREFIX)/bin/whyidle
	$(Q)install -d $(DESTDIR)$(DOCUMENTS)/docs
	$(Q)install -m 644 README.md CHANGELOG.md LICENSE $(DESTDIR)$(DOCUMENTS)
	$(Q)install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions
	$(Q)$(BUILD)/whyidle manual >$(DESTDIR)$(PREFIX)/share/man/man1/whyidle.1
	$(Q)$(BUILD)/whyidle completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/whyidle
	$(Q)$(BUILD)/whyidle completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_whyidle
	$(Q)install -m 644 $(wildcard docs/*.md docs/*.json docs/*.png) $(DESTDIR)$(DOCUMENTS)/docs
	$(Q)install -d $(DESTDIR)$(DOCUMENTS)/docs/production
	$(Q)install -m 644 $(wildcard docs/production/*) $(DESTDIR)$(DOCUMENTS)/docs/production
	$(Q)install -d $(DESTDIR)$(UNITS)
	$(Q)sed 's|/usr/local/bin/|$(PREFIX)/bin/|' docs/production/whyidle.service >$(DESTDIR)$(UNITS)/whyidle.service
	$(Q)chmod 644 $(DESTDIR)$(UNITS)/whyidle.service

# The unit is stopped and disabled by whoever enabled it; history and configuration stay.
uninstall:
	$(Q)rm -f $(DESTDIR)$(PREFIX)/bin/whyidle $(DESTDIR)$(PREFIX)/share/man/man1/whyidle.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/whyidle \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_whyidle $(DESTDIR)$(UNITS)/whyidle.service
	$(Q)rm -rf $(DESTDIR)$(DOCUMENTS)

clean:
	$(Q)rm -rf $(BUILD)

.PHONY: all help deps install uninstall clean
