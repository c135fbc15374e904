# The program. Everything but cli/main.c goes into an archive that the unit tests link too (built with sanitizers).

USER_LIBRARIES := libbpf libelf zlib libzstd jansson sqlite3
USER_SOURCES := $(filter-out userspace/cli/main.c,$(wildcard userspace/*/*.c))
HTML_ASSETS := $(BUILD)/obj/html_assets.o
# Instructions that are lent to processes that run already.
PAYLOAD := $(BUILD)/obj/payload_x86_64.o
USER_OBJECTS := $(USER_SOURCES:%.c=$(BUILD)/obj/%.o) $(HTML_ASSETS) $(PAYLOAD)
USER_ARCHIVE := $(BUILD)/libwhyidle.a
# The C++ demangler of the compiler: always a static archive, so that no C++ library is needed to run.
DEMANGLER := -lsupc++
# Parts that need no BPF and no root: what the unit tests and the fuzzers link.
LIVE_SOURCES := $(addprefix userspace/daemon/,daemon.c watch.c windows.c window.c answers.c)
PURE_SOURCES := $(filter-out userspace/collect/% $(LIVE_SOURCES),$(USER_SOURCES)) $(wildcard userspace/collect/pure_*.c) \
	userspace/collect/python_code.c userspace/collect/python_thread.c
PURE_OBJECTS := $(PURE_SOURCES:%.c=$(BUILD)/san/%.o) $(HTML_ASSETS) $(PAYLOAD)

LIBRARIES := -lbpf -lelf -llzma -lz -lzstd -ljansson -lsqlite3 $(DEMANGLER)
ifeq ($(STATIC),1)
# libelf of newer distributions itself needs libzstd, so that comes last; one needs what base/libelf_tree.c holds.
LIBRARIES := -Wl,-Bstatic -lbpf -lelf $(USER_ARCHIVE) -llzma -lz -ljansson -lsqlite3 -lzstd $(DEMANGLER) -Wl,-Bdynamic
endif
SYSTEM_LIBRARIES := -lpthread -ldl -lm

# Style and program of the HTML report travel inside the program as well.
$(HTML_ASSETS): userspace/report/html/page.css userspace/report/html/page.js userspace/userspace.mk
	$(call say,EMBED,$(filter %.css %.js,$^))
	$(Q)mkdir -p $(@D)
	$(Q)printf '.section .rodata\n.globl html_style_start\nhtml_style_start:\n.incbin "%s"\n.globl html_style_end\nhtml_style_end:\n.globl html_program_start\nhtml_program_start:\n.incbin "%s"\n.globl html_program_end\nhtml_program_end:\n.section .note.GNU-stack,"",%%progbits\n' $(filter %.css %.js,$^) > $(@:.o=.s)
	$(Q)$(CC) -c $(@:.o=.s) -o $@

$(PAYLOAD): userspace/inject/payload_x86_64.S userspace/inject/payload.h userspace/inject/lent_stack.h cupti_bridge/attach.h
	$(call say,AS,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -I. -c $< -o $@

# The bridge travels inside the program, so that one file is all there is to copy.
$(BUILD)/obj/bridge_blob.o: $(BRIDGE)
	$(call say,EMBED,$<)
	$(Q)mkdir -p $(@D)
	$(Q)printf '.section .rodata\n.balign 16\n.globl bridge_blob_start\nbridge_blob_start:\n.incbin "%s"\n.globl bridge_blob_end\nbridge_blob_end:\n.section .note.GNU-stack,"",%%progbits\n' $< > $(@:.o=.s)
	$(Q)$(CC) -c $(@:.o=.s) -o $@

$(filter $(BUILD)/obj/userspace/collect/%,$(USER_OBJECTS)): $(SKELETON) $(COUNTERS_SKELETON)

# Names of system calls, from the C library's own numbers.
SYSCALL_TABLE := $(BUILD)/gen/syscalls.inc
$(SYSCALL_TABLE): userspace/userspace.mk
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)printf '#include <sys/syscall.h>\n' | $(CC) -E -dM - | \
		sed -n 's/^#define SYS_\([a-z0-9_]*\) .*/SYSCALL(\1)/p' | sort > $@

$(BUILD)/obj/userspace/model/wait.o $(BUILD)/san/userspace/model/wait.o: $(SYSCALL_TABLE)

$(BUILD)/obj/userspace/%.o: userspace/%.c userspace/version
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) $(CFLAGS) -c $< -o $@

$(BUILD)/san/userspace/%.o: userspace/%.c userspace/version
	$(call say,CC-SAN,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -O1 -g $(SANITIZE) -c $< -o $@

$(USER_ARCHIVE): $(USER_OBJECTS)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/whyidle: $(BUILD)/obj/userspace/cli/main.o $(USER_ARCHIVE) $(BUILD)/obj/bridge_blob.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LIBRARIES) $(SYSTEM_LIBRARIES) -o $@

-include $(USER_OBJECTS:.o=.d) $(BUILD)/obj/userspace/cli/main.d $(PURE_OBJECTS:.o=.d)
