# jaxcc. `make` builds build/bin/jaxcc, jaxcc-run and the runtime archive; `make check` tests, `make demo` shows. MODE=release (default)
# links LLVM and MLIR statically; debug and asan link their shared libraries; fuzz is clang's libFuzzer.
MODE ?= release
$(if $(filter $(MODE),release debug asan fuzz),,$(error MODE=$(MODE): it is release, debug, asan or fuzz))
B ?= build/$(MODE)
LLVM ?= /usr/lib/llvm-22
PREFIX ?= /usr/local
MAKEFLAGS += -j$(shell nproc) --no-print-directory

PACKAGES = gcc g++ libc6-dev binutils lld flex bison libmlir-22-dev mlir-22-tools llvm-22-dev uthash-dev zlib1g-dev libzstd-dev
PACKAGES.accuracy = libmpfr-dev
PACKAGES.tidy = clang-format-22 clang-tidy-22 libclang-rt-22-dev # with the headers of sanitizers
PACKAGES.check = liblapack3 libcriterion-dev valgrind mandoc bsdextrautils
CFLAGS.release = -O2 -fno-pie -ffunction-sections
CFLAGS.debug = -O0 -g -DJAXCC_VERIFY=1
CFLAGS.asan = -O1 -g -DJAXCC_VERIFY=1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CFLAGS.fuzz = $(CFLAGS.asan) -DJAXCC_FEW_COPIES -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp
CC := $(if $(filter fuzz,$(MODE)),clang-22,$(CC))
WARN = -std=c17 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wno-unused-parameter -MMD -MP
CFLAGS = $(WARN) $(CFLAGS.$(MODE)) -I. -Icompiler -I$(B) -I$(B)/gen -isystem $(LLVM)/include
# The runtime goes into other people's libraries: any x86-64, position independent, nothing exported, never instrumented,
# and its thread-local text needs no __tls_get_addr: libraries depend on libc and libm alone.
CFLAGS.rt = $(WARN) $(if $(filter release,$(MODE)),-DNDEBUG) -O2 -fPIC -ffunction-sections -fdata-sections -fvisibility=hidden -fno-asynchronous-unwind-tables -fno-math-errno -mtls-dialect=gnu2 \
	$(if $(findstring clang,$(CC)),,-fcallgraph-info=su) # what tests/stack.sh reads

# What the compiler does not use is dropped; start-up takes 4 ms, where relocating libMLIR.so takes 25.
LLD = $$(command -v ld.lld >/dev/null && echo -fuse-ld=lld)
LINK.static = -no-pie -static-libgcc $(LLD) -Wl,--gc-sections,--as-needed,-s \
	-Wl,--start-group $$(ls $(LLVM)/lib/libMLIR*.a $(LLVM)/lib/libLLVM*.a | grep -v Test) -Wl,--end-group \
	-l:libstdc++.a -l:libzstd.a -l:libz.a -lm -ldl -pthread
LINK.shared = $(LLD) -Wl,--start-group $(LLVM)/lib/libMLIRCAPI*.a -Wl,--end-group -Wl,--as-needed,-rpath,$(LLVM)/lib -L$(LLVM)/lib \
	-lMLIR -lLLVM-22 -lstdc++ -lm -lz -ldl -pthread
LINK = $(CFLAGS.$(MODE)) $(if $(filter release,$(MODE)),$(LINK.static),$(LINK.shared))
LINK.small = $(CFLAGS.$(MODE)) $(if $(filter release,$(MODE)),-no-pie) -lz -ldl -lm -pthread

FRONT = $(filter-out compiler/main.c,$(wildcard $(addsuffix /*.c,compiler compiler/parse compiler/typecheck compiler/passes compiler/passes/rules compiler/passes/transform)))
# The plan and what it is made of use neither LLVM nor MLIR.
PLAN = $(wildcard $(addprefix compiler/codegen/,plan/*.c eval/*.c target/*.c))
BACK = $(wildcard $(addprefix compiler/codegen/,*.c emit/*.c kernels/*.c host/*.c machine/*.c))
BOTH = runtime/npz.c runtime/npz_write.c runtime/float.c # of the compiler and of jaxcc-run
SOLVED = runtime/extent.c # of jaxcc-run and of libraries
RT = $(filter-out runtime/run%.c $(BOTH),$(wildcard runtime/*.c))
FRONT_O = $(FRONT:%.c=$(B)/%.o) $(addprefix $(B)/gen/,lex.o parse.o stdlib.o rules.o) $(BOTH:%.c=$(B)/%.o)
PLAN_O = $(PLAN:%.c=$(B)/%.o)
BACK_O = $(BACK:%.c=$(B)/%.o)
RT_O = $(RT:runtime/%.c=$(B)/rt/%.o)
STUBS = $(B)/libc.stub.so $(B)/libm.stub.so
RUN_O = $(patsubst %.c,$(B)/%.o,$(wildcard runtime/run*.c) $(BOTH) $(SOLVED))
# The compiler and jaxcc-run as functions: the runner of cases forks instead of starting programs.
RUNNER_O = $(addprefix $(B)/tests/,runner.o cases.o drawn.o loaded.o linear.o $(patsubst %.c,as_functions/%.o,compiler/main.c $(wildcard runtime/run*.c))) \
	$(SOLVED:%.c=$(B)/%.o)
GEN_O = $(patsubst %.c,$(B)/%.o,tests/fuzz/gen.c $(wildcard tests/fuzz/make_*.c))
# The interpreter of PTX, as what goes into a shared library too; its operations are vector code.
PTX = $(filter-out tests/gpu/driver%,$(wildcard tests/gpu/*.c)) compiler/arena.c compiler/intern.c compiler/str.c runtime/float.c
PTX_O = $(PTX:%.c=$(B)/ptx/%.o)
# NVIDIA's driver for tests, which runs on it.
DRIVER_O = $(patsubst %.c,$(B)/ptx/%.o,$(wildcard tests/gpu/driver*.c))
UNITS = $(patsubst %.c,$(B)/%,$(wildcard tests/unit/*.c))
STDLIB = $(sort $(wildcard stdlib/*.jaxpr))
RULES = $(sort $(wildcard stdlib/rules/*.jaxpr))

.DELETE_ON_ERROR:
.PHONY: all check check-gpu check-large bless demo bench accuracy fuzz install format tidy clean
all: $(B)/bin/jaxcc $(B)/bin/jaxcc-run $(STUBS)
	@[ $(B) != build/release ] || ln -sfn release/bin build/bin

$(B)/deps: Makefile
	@sh tests/deps.sh $(LLVM) $(PACKAGES) && mkdir -p $(B)/gen && touch $@
$(B)/deps-check: Makefile | $(B)/deps
	@sh tests/deps.sh $(LLVM) $(PACKAGES.check) && touch $@
$(filter $(B)/compiler/parse/%,$(FRONT_O)) $(B)/gen/lex.o: | $(B)/gen/parse.h
$(B)/deps-tidy: Makefile | $(B)/deps
	@sh tests/deps.sh $(LLVM) $(PACKAGES.tidy) && touch $@
$(B)/deps-accuracy: Makefile | $(B)/deps
	@sh tests/deps.sh $(LLVM) $(PACKAGES.accuracy) && touch $@
$(B)/tests/accuracy.o $(B)/tests/exact.o: | $(B)/deps-accuracy
$(UNITS:=.o): | $(B)/deps-check
$(B)/%.o: %.c Makefile | $(B)/deps
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c $< -o $@
$(B)/tests/as_functions/%.o: %.c Makefile | $(B)/deps
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Dmain=$(if $(findstring run,$*),jaxcc_run_main,jaxcc_main) -c $< -o $@
$(B)/ptx/%.o: %.c Makefile | $(B)/deps
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -fvisibility=hidden $(if $(filter release,$(MODE)),-O3) -march=x86-64-v3 -c $< -o $@
$(B)/rt/sort.o $(B)/rt/sort_avx2.o: CFLAGS.rt += -O3 -falign-functions=64
$(B)/rt/%.o: runtime/%.c Makefile | $(B)/deps
	@mkdir -p $(@D)
	$(CC) $(CFLAGS.rt) -c $< -o $@
# gcc marks the parser's stacks, 10,000 levels, at every label of it: half of the time of a compilation.
ifeq ($(MODE),asan)
$(B)/gen/parse.o: CFLAGS += -fno-sanitize-address-use-after-scope
endif
$(B)/gen/%.o: $(B)/gen/%.c
	$(CC) $(CFLAGS) -w -Icompiler/parse -c $< -o $@
$(B)/gen/parse.h $(B)/gen/parse.c &: compiler/parse/parse.y | $(B)/deps
	bison -Wall --defines=$(B)/gen/parse.h -o $(B)/gen/parse.c $<
$(B)/gen/lex.c: compiler/parse/lex.l | $(B)/deps
	flex -o $@ $<
# Texts as the table of passes/stdlib.h that is named.
$(B)/gen/stdlib.c: $(STDLIB)
$(B)/gen/rules.c: $(RULES)
$(B)/gen/stdlib.c: TABLE = stdlib_files
$(B)/gen/rules.c: TABLE = rule_files
$(B)/gen/stdlib.c $(B)/gen/rules.c: Makefile | $(B)/deps
	@{ echo '#include "compiler/passes/stdlib.h"'; echo 'const TextFile $(TABLE)[] = {'; \
	for f in $(filter %.jaxpr,$^); do n=$${f##*/}; echo "{\"$${n%.jaxpr}\","; sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n"/' $$f; \
	echo ", $$(wc -c <$$f)},"; done; echo '{0, 0, 0}};'; } >$@
$(B)/compiler/codegen/report.o: compiler/codegen/report.html
$(B)/libjaxcc.a: $(FRONT_O)
$(B)/libjaxcc_plan.a: $(PLAN_O)
$(B)/libjaxcc_codegen.a: $(BACK_O)
$(B)/libjaxcc_rt.a: $(RT_O)
$(B)/libptx.a: $(PTX_O)
$(B)/libjaxcc.a $(B)/libjaxcc_plan.a $(B)/libjaxcc_codegen.a $(B)/libjaxcc_rt.a $(B)/libptx.a:
	rm -f $@; ar rcs $@ $^
# Of libc, what the runtime uses and what LLVM writes calls of.
$(B)/libc.stub.so: $(B)/libjaxcc_rt.a runtime/stub.sh
	sh runtime/stub.sh libc.so.6 $@ $(CC) $$(nm -u $< | sed -n 's/^ *U //p') bcmp memcmp memcpy memmove memset
$(B)/libm.stub.so: runtime/stub.sh | $(B)/deps
	sh runtime/stub.sh libm.so.6 $@ $(CC)
$(B)/bin/jaxcc: $(B)/compiler/main.o $(B)/libjaxcc_codegen.a $(B)/libjaxcc_plan.a $(B)/libjaxcc.a
$(B)/tests/runner: $(RUNNER_O) $(B)/libjaxcc_codegen.a $(B)/libjaxcc_plan.a $(B)/libjaxcc.a
$(B)/tests/programs: $(B)/tests/programs.o $(B)/libjaxcc_codegen.a $(B)/libjaxcc_plan.a $(B)/libjaxcc.a
$(B)/tests/laws: $(B)/tests/laws.o $(B)/tests/divide.o $(B)/tests/as_functions/compiler/main.o $(B)/libjaxcc_codegen.a $(B)/libjaxcc_plan.a $(B)/libjaxcc.a
$(B)/bin/jaxcc $(B)/tests/runner $(B)/tests/programs $(B)/tests/laws:
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(LINK)
$(B)/bin/jaxcc-run: $(RUN_O)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(LINK.small)
$(B)/tests/symbolic: $(B)/tests/symbolic.o $(B)/tests/cases.o $(B)/libjaxcc.a
	$(CC) -o $@ $^ $(LINK.small)
$(B)/tests/normalise: $(B)/tests/normalise.o $(B)/tests/cases.o $(B)/libjaxcc.a
	$(CC) -o $@ $^ $(LINK.small)
$(B)/tests/scalar: $(B)/tests/scalar.o $(B)/libjaxcc.a
	$(CC) -o $@ $^ $(LINK.small)
$(B)/tests/params: $(B)/tests/params.o $(B)/tests/cases.o $(B)/libjaxcc.a
	$(CC) -o $@ $^ $(LINK.small)
$(B)/tests/accuracy: $(B)/tests/accuracy.o $(B)/tests/exact.o
	$(CC) -o $@ $^ -lmpfr -lgmp $(LINK.small)
$(B)/tests/gpu/libcuda.so.1: $(DRIVER_O) $(B)/libptx.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS.$(MODE)) -shared -Wl,-soname,libcuda.so.1 -o $@ $^ -lm -pthread
# NCCL and cuSOLVER for tests, apart: who does not look for them there does without.
$(B)/tests/gpu/nccl/libnccl.so.2: tests/nccl.c runtime/cuda_driver.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -shared -Wl,-soname,libnccl.so.2 -o $@ $< -ldl
$(B)/tests/gpu/solver/libcusolver.so.12: tests/cusolver.c runtime/cuda_driver.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -shared -Wl,-soname,libcusolver.so.12 -o $@ $< -ldl
$(B)/tests/gpu_%: $(B)/tests/gpu_%.o $(B)/libjaxcc_rt.a
	$(CC) -o $@ $^ $(LINK.small)
$(B)/tests/unit/ptx_%: $(B)/tests/unit/ptx_%.o $(B)/libptx.a
	$(CC) -o $@ $^ -lcriterion $(LINK.small)
$(B)/tests/unit/plan: $(B)/tests/unit/plan.o $(B)/libjaxcc_plan.a $(B)/libjaxcc.a
	$(CC) -o $@ $^ -lcriterion $(LINK.small)
$(B)/tests/unit/%: $(B)/tests/unit/%.o $(B)/libjaxcc.a $(B)/libjaxcc_rt.a
	$(CC) -o $@ $^ -lcriterion $(LINK.small)
$(B)/fuzz/typed: $(GEN_O)
$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/libjaxcc.a
	@mkdir -p $(@D)
	$(CC) -o $@ $(filter %.o,$^) $(filter %.a,$^) -fsanitize=fuzzer $(LINK.small)

check: all $(addprefix $(B)/tests/,runner programs symbolic params normalise laws gpu_runtime gpu_driver gpu/libcuda.so.1 gpu/solver/libcusolver.so.12 gpu/nccl/libnccl.so.2) $(UNITS) $(B)/deps-check
	@sh tests/check.sh $(B) $(MODE)
# All cases on the interpreter of PTX: half an hour.
check-gpu: all $(addprefix $(B)/tests/,runner gpu/libcuda.so.1 gpu/nccl/libnccl.so.2)
	@sh tests/gpu-cases.sh $(B) 1 1
	@sh tests/gpu-ptxas.sh $(B) 1 tests/cases examples
# Constants beyond 2 GiB, 8 GiB in all: some minutes, 20 GB of disk.
check-large: all
	@sh tests/large.sh $(B) $(MODE) all
bless: all
	@sh tests/golden.sh $(B) --bless; sh tests/errors.sh $(B) --bless
demo: all
	@$(MAKE) -C examples run BIN=$(abspath $(B)/bin) OUT=$(abspath $(B)/examples)
bench: all
	@PYTHON="$(PYTHON)" CASES="$(CASES)" ARGS="$(ARGS)" sh tests/bench.sh $(B)
# The table of stdlib/ACCURACY.md. ARGS: see tests/accuracy.c; FUNCTIONS: some only.
accuracy: all $(B)/tests/accuracy
	@$(B)/tests/accuracy $(ARGS) $(B)/bin/jaxcc $(FUNCTIONS)
# A minute each, or SECONDS.
ifeq ($(MODE),fuzz)
fuzz: $(B)/fuzz/parse $(B)/fuzz/typed
	@sh tests/fuzz/run.sh $(B) $(or $(SECONDS),60)
else
fuzz:
	@$(MAKE) MODE=fuzz fuzz
endif
install: all
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/jaxcc include share/man/man1)
	install $(B)/bin/jaxcc $(B)/bin/jaxcc-run $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(B)/libjaxcc_rt.a $(STUBS) $(DESTDIR)$(PREFIX)/lib/jaxcc
	install -m 644 runtime/jaxcc.h $(DESTDIR)$(PREFIX)/include
	install -m 644 man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
format: $(B)/deps-tidy
	clang-format-22 -i $$(git ls-files '*.[ch]')
tidy: $(B)/gen/parse.h $(B)/deps-tidy
	clang-format-22 --dry-run -Werror $$(git ls-files '*.[ch]')
	printf '%s\n' $(FRONT) $(PLAN) $(BACK) compiler/main.c $(RT) $(BOTH) $(wildcard runtime/run*.c) | xargs -P$(shell nproc) -I{} clang-tidy-22 --quiet {} -- $(filter-out -MMD -MP,$(CFLAGS)) \
	'-DCMPLX(x,y)=__builtin_complex((double)(x),(double)(y))' '-DCMPLXF(x,y)=__builtin_complex((float)(x),(float)(y))' # glibc: for gcc alone
clean:
	rm -rf build
-include $(patsubst %.o,%.d,$(FRONT_O) $(PLAN_O) $(BACK_O) $(RT_O) $(RUN_O) $(RUNNER_O) $(addprefix $(B)/tests/,symbolic.o params.o programs.o normalise.o scalar.o laws.o divide.o gpu_runtime.o gpu_driver.o) $(GEN_O) $(PTX_O) $(DRIVER_O) $(UNITS:=.o) $(B)/compiler/main.o)
