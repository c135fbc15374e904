# Stand-ins for libcuda, libcudart and libcupti, and the workloads that run on them. No CUDA Toolkit needed.

SIM       := $(BUILD)/sim
SIM_LIB   := $(SIM)/lib
SIM_CUDA  := $(SIM_LIB)/libcuda.so.1
SIM_RUNTIME := $(SIM_LIB)/libcudart.so.13
SIM_CUPTI := $(SIM_LIB)/libcupti.so.13
SIM_NCCL := $(SIM_LIB)/libnccl.so.2
SIM_CFLAGS := $(BASE_CFLAGS) -I. -fPIC
# Found by the workloads and by whatever is loaded into them, before a real driver: old-style RPATH.
SIM_RPATH := -Wl,--disable-new-dtags -Wl,-rpath,

SIM_CUDA_OBJECTS := $(patsubst %.c,$(SIM)/obj/%.o,$(filter-out tests/sim/cuda/runtime.c,$(wildcard tests/sim/cuda/*.c)))
SIM_NCCL_OBJECTS := $(patsubst %.c,$(SIM)/obj/%.o,$(wildcard tests/sim/nccl/*.c))
SIM_CUPTI_OBJECTS := $(patsubst %.c,$(SIM)/obj/%.o,$(wildcard tests/sim/cupti/*.c))
SIM_COMMON_OBJECTS := $(patsubst %.c,$(SIM)/obj/%.o,$(wildcard tests/sim/workloads/common_*.c))
SIM_PROGRAMS := $(patsubst tests/sim/workloads/%.c,$(SIM)/%,$(filter-out tests/sim/workloads/common_%,$(wildcard tests/sim/workloads/*.c)))
# One program of several files: the plants of tests/proof.
SIM_PLANTED := $(SIM)/planted
SIM_PLANTED_OBJECTS := $(patsubst %.c,$(SIM)/obj/%.o,$(wildcard tests/sim/workloads/planted/*.c))
# Ranks of a job, with the plants of the program above.
SIM_RANK := $(SIM)/rank
SIM_RANK_OBJECTS := $(patsubst %.c,$(SIM)/obj/%.o,$(wildcard tests/sim/workloads/rank/*.c)) \
	$(filter-out %/main.o,$(SIM_PLANTED_OBJECTS))
# Programs that are not linked with CUDA.
SIM_PLAIN_PROGRAMS := $(SIM)/no_cuda $(SIM)/many_events $(SIM)/late_driver $(SIM)/odd_target

$(SIM)/obj/tests/sim/cuda/%.o $(SIM)/obj/tests/sim/cupti/%.o $(SIM)/obj/tests/sim/nccl/%.o: SIM_CFLAGS += -fvisibility=hidden
$(SIM)/obj/tests/sim/workloads/%.o: SIM_CFLAGS += -fno-omit-frame-pointer

$(SIM)/obj/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SIM_CFLAGS) $(CFLAGS) -c $< -o $@

$(SIM_CUDA): $(SIM_CUDA_OBJECTS)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs $(LDFLAGS) $^ -lpthread -ldl -o $@
	$(Q)ln -sf libcuda.so.1 $(SIM_LIB)/libcuda.so

$(SIM_RUNTIME): $(SIM)/obj/tests/sim/cuda/runtime.o $(SIM_CUDA)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,-soname,libcudart.so.13 -Wl,-z,defs $(SIM_RPATH)'$$ORIGIN' $(LDFLAGS) $^ -lpthread -o $@
	$(Q)ln -sf libcudart.so.13 $(SIM_LIB)/libcudart.so

$(SIM_CUPTI): $(SIM_CUPTI_OBJECTS) $(SIM_CUDA)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,-soname,libcupti.so.13 -Wl,-z,defs $(SIM_RPATH)'$$ORIGIN' $(LDFLAGS) $^ -lpthread -o $@
	$(Q)ln -sf libcupti.so.13 $(SIM_LIB)/libcupti.so

$(SIM_NCCL): $(SIM_NCCL_OBJECTS) $(SIM_CUDA)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,-soname,libnccl.so.2 -Wl,-z,defs $(SIM_RPATH)'$$ORIGIN' $(LDFLAGS) $^ -lpthread -lrt -o $@
	$(Q)ln -sf libnccl.so.2 $(SIM_LIB)/libnccl.so

$(SIM)/cupti_user: SIM_EXTRA = $(SIM_CUPTI)
$(SIM)/cupti_user: $(SIM_CUPTI)

$(filter-out $(SIM_PLAIN_PROGRAMS),$(SIM_PROGRAMS)): $(SIM)/%: $(SIM)/obj/tests/sim/workloads/%.o $(SIM_COMMON_OBJECTS) $(SIM_RUNTIME) $(SIM_CUDA)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(SIM_RPATH)'$$ORIGIN/lib' $(LDFLAGS) $(filter %.o,$^) $(SIM_EXTRA) $(SIM_RUNTIME) $(SIM_CUDA) -lpthread -o $@

$(SIM_PLANTED): $(SIM_PLANTED_OBJECTS) $(SIM_COMMON_OBJECTS) $(SIM_RUNTIME) $(SIM_CUDA)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(SIM_RPATH)'$$ORIGIN/lib' $(LDFLAGS) $^ -lpthread -o $@

$(SIM_RANK): $(SIM_RANK_OBJECTS) $(SIM_COMMON_OBJECTS) $(SIM_NCCL) $(SIM_RUNTIME) $(SIM_CUDA)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(SIM_RPATH)'$$ORIGIN/lib' $(LDFLAGS) $^ -lpthread -o $@

$(SIM_PLAIN_PROGRAMS): $(SIM)/%: $(SIM)/obj/tests/sim/workloads/%.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -lpthread -ldl -o $@

# At the same addresses each time.
$(SIM)/odd_target: LDFLAGS += -no-pie

# The simulator's own test: no root needed.
SIM_TEST := $(SIM)/selftest
SIM_TEST_INJECTED := $(SIM_LIB)/libinject.so
SIM_TEST_OBJECTS := $(patsubst %.c,$(SIM)/obj/%.o,$(filter-out %/inject.c,$(wildcard tests/sim/selftest/*.c)))

$(SIM_TEST_INJECTED): $(SIM)/obj/tests/sim/selftest/inject.o $(SIM_CUDA)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,-soname,libinject.so $(LDFLAGS) $^ -o $@

$(SIM_TEST): $(SIM_TEST_OBJECTS) $(SIM_CUPTI) $(SIM_RUNTIME) $(SIM_CUDA)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(SIM_RPATH)'$$ORIGIN/lib' $(LDFLAGS) $^ -lpthread -ldl -o $@

# The same with NVIDIA's own NVTX compiled in, where its headers are.
SIM_REAL_NVTX :=
ifneq ($(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExt.h),)
SIM_REAL_NVTX := $(SIM)/nvtx_ranges_real
$(SIM)/obj/nvtx_ranges_real.o: tests/sim/workloads/nvtx_ranges.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SIM_CFLAGS) $(CFLAGS) -DREAL_NVTX -isystem $(CUDA_HOME)/include -c $< -o $@

$(SIM_REAL_NVTX): $(SIM)/obj/nvtx_ranges_real.o $(SIM_COMMON_OBJECTS) $(SIM_RUNTIME) $(SIM_CUDA)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(SIM_RPATH)'$$ORIGIN/lib' $(LDFLAGS) $^ -lpthread -ldl -o $@
endif

sim: $(SIM_CUDA) $(SIM_RUNTIME) $(SIM_CUPTI) $(SIM_PROGRAMS) $(SIM_PLANTED) $(SIM_RANK) $(SIM_REAL_NVTX)

sim-test: $(SIM_TEST) $(SIM_TEST_INJECTED)
	$(Q)$(SIM_TEST)

.PHONY: sim sim-test
-include $(wildcard $(SIM)/obj/tests/sim/*/*.d $(SIM)/obj/tests/sim/*/*/*.d)
