# jaxcc. `make` builds build/bin/jaxcc, build/bin/jaxcc-run and build/release/libjaxcc_rt.a; `make check` tests, `make demo` shows.
# MODE=release (default) links LLVM and MLIR statically; debug and asan link their shared libraries; fuzz is clang's libFuzzer.
MODE ?= release
B ?= build/$(MODE)
LLVM ?= /usr/lib/llvm-22
PREFIX ?= /usr/local
MAKEFLAGS += -j$(shell nproc) --no-print-directory

PACKAGES = gcc g++ libc6-dev binutils lld flex bison libmlir-22-dev mlir-22-tools llvm-22-dev uthash-dev zlib1g-dev
PACKAGES.check = libcriterion-dev valgrind mandoc
MODES = release debug asan fuzz
CFLAGS.release = -O2 -fno-pie -ffunction-sections
CFLAGS.debug = -O0 -g -DJAXCC_VERIFY=1
CFLAGS.asan = -O1 -g -DJAXCC_VERIFY=1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CFLAGS.fuzz = $(CFLAGS.asan) -fsanitize=fuzzer-no-link
CC.fuzz = clang-22
ifneq ($(CC.$(MODE)),)
CC = $(CC.$(MODE))
endif
WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wno-unused-parameter
CFLAGS = -std=c17 -D_GNU_SOURCE $(WARN) -MMD -MP $(CFLAGS.$(MODE)) -I. -Icompiler -I$(B) -I$(B)/gen -isystem $(LLVM)/include
# The runtime goes into other people's libraries: any x86-64, position independent, nothing exported, never instrumented.
CFLAGS.rt = -std=c17 -D_GNU_SOURCE $(WARN) -MMD -MP -O2 -fPIC -ffunction-sections -fdata-sections -fvisibility=hidden -mtls-dialect=gnu2 -fno-asynchronous-unwind-tables

# Everything that the compiler does not use is dropped; start-up is 4 ms, where relocating libMLIR.so takes 25.
ARCHIVES = $$(ls $(LLVM)/lib/libMLIR*.a $(LLVM)/lib/libLLVM*.a | grep -v Test)
LINK.static = -no-pie -static-libgcc $$(command -v ld.lld >/dev/null && echo -fuse-ld=lld) -Wl,--gc-sections,--as-needed,-s \
	-Wl,--start-group $(ARCHIVES) -Wl,--end-group -l:libstdc++.a -lm -lz -lzstd -lxml2 -lffi -ltinfo -lz3
LINK.shared = $$(command -v ld.lld >/dev/null && echo -fuse-ld=lld) -Wl,--start-group $(LLVM)/lib/libMLIRCAPI*.a -Wl,--end-group \
	-Wl,--as-needed -L$(LLVM)/lib -lMLIR -lLLVM-22 -lstdc++ -lm -lz -Wl,-rpath,$(LLVM)/lib
LINK = $(if $(filter release,$(MODE)),$(LINK.static),$(LINK.shared))

FRONT = $(filter-out compiler/main.c,$(wildcard compiler/*.c compiler/parse/*.c compiler/typecheck/*.c compiler/passes/*.c compiler/passes/rules/*.c))
BACK = $(wildcard compiler/codegen/*.c)
RT = $(filter-out runtime/run%.c runtime/npz.c,$(wildcard runtime/*.c))
FRONT_O = $(FRONT:%.c=$(B)/%.o) $(addprefix $(B)/gen/,lex.o parse.o stdlib.o) $(B)/runtime/npz.o
BACK_O = $(BACK:%.c=$(B)/%.o)
RT_O = $(RT:runtime/%.c=$(B)/rt/%.o)
RUN_O = $(patsubst %.c,$(B)/%.o,$(wildcard runtime/run*.c)) $(B)/runtime/npz.o
UNITS = $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/*.c))
FUZZERS = $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/*.c))
STDLIB = $(sort $(wildcard stdlib/*.jaxpr))

.DELETE_ON_ERROR:
.PHONY: all front deps check bless demo bench fuzz install format tidy clean
all: $(B)/bin/jaxcc $(B)/bin/jaxcc-run $(B)/libjaxcc_rt.a
	@[ $(B) != build/release ] || ln -sfn release/bin build/bin
front: $(B)/libjaxcc.a

deps: $(B)/deps
$(B)/deps: Makefile
	@[ -n "$(filter $(MODE),$(MODES))" ] || { echo "MODE=$(MODE): it is one of $(MODES)"; exit 1; }
	@sh tests/deps.sh $(LLVM) $(PACKAGES)
	@mkdir -p $(B)/gen && touch $@

$(filter $(B)/compiler/parse/%,$(FRONT_O)) $(B)/gen/lex.o: | $(B)/gen/parse.h
$(B)/%.o: %.c | $(B)/deps
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c $< -o $@
$(B)/rt/%.o: runtime/%.c | $(B)/deps
	@mkdir -p $(@D)
	$(CC) $(CFLAGS.rt) -c $< -o $@
$(B)/gen/%.o: $(B)/gen/%.c
	$(CC) $(CFLAGS) -w -Icompiler/parse -c $< -o $@
$(B)/gen/parse.h $(B)/gen/parse.c &: compiler/parse/parse.y | $(B)/deps
	bison -Wall --defines=$(B)/gen/parse.h -o $(B)/gen/parse.c $<
$(B)/gen/lex.c: compiler/parse/lex.l | $(B)/deps
	flex -o $@ $<
# The texts of stdlib/ as one table, ended by a row of zeros.
$(B)/gen/stdlib.c: $(STDLIB) Makefile | $(B)/deps
	@{ echo '#include <stdint.h>'; \
	for f in $(STDLIB); do n=$${f##*/}; echo "static const char t_$${n%.jaxpr}[] = {"; od -An -v -tu1 $$f | sed 's/[0-9][0-9]*/&,/g'; echo '};'; done; \
	echo 'const struct { const char *name, *text; uint32_t n; } stdlib_files[] = {'; \
	for f in $(STDLIB); do n=$${f##*/}; n=$${n%.jaxpr}; echo "{\"$$n\", t_$$n, sizeof t_$$n},"; done; echo '{0, 0, 0}};'; } >$@
$(B)/libjaxcc.a: $(FRONT_O)
$(B)/libjaxcc_codegen.a: $(BACK_O)
$(B)/libjaxcc_rt.a: $(RT_O)
$(B)/libjaxcc.a $(B)/libjaxcc_codegen.a $(B)/libjaxcc_rt.a:
	@mkdir -p $(@D)
	rm -f $@; ar rcs $@ $^
$(B)/bin/jaxcc: $(B)/compiler/main.o $(B)/libjaxcc_codegen.a $(B)/libjaxcc.a
# The compiler and jaxcc-run as functions: the runner forks instead of starting programs.
$(B)/tests/as_functions/%.o: %.c | $(B)/deps
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Dmain=$(if $(findstring run,$*),jaxcc_run_main,jaxcc_main) -c $< -o $@
RUNNER_O = $(B)/tests/runner.o $(B)/tests/cases.o $(patsubst %.c,$(B)/tests/as_functions/%.o,compiler/main.c $(wildcard runtime/run*.c))
$(B)/tests/runner: $(RUNNER_O) $(B)/libjaxcc_codegen.a $(B)/libjaxcc.a
$(B)/bin/jaxcc $(B)/tests/runner:
	@mkdir -p $(@D)
	$(CC) $(CFLAGS.$(MODE)) -o $@ $^ $(LINK) -ldl -pthread
$(B)/bin/jaxcc-run: $(RUN_O)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS.$(MODE)) $(if $(filter release,$(MODE)),-no-pie) -rdynamic -o $@ $^ -lz -ldl -lm -pthread
$(B)/tests/unit/%: $(B)/tests/unit/%.o $(B)/libjaxcc.a $(B)/libjaxcc_rt.a
	$(CC) $(CFLAGS.$(MODE)) $(if $(filter release,$(MODE)),-no-pie) -o $@ $^ -lcriterion -lz -ldl -lm -pthread
$(UNITS:=.o): | $(B)/deps-check
$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/libjaxcc.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS.fuzz) -fsanitize=fuzzer -o $@ $^ -lz -lm
$(B)/deps-check: Makefile | $(B)/deps
	@sh tests/deps.sh $(LLVM) $(PACKAGES.check) && touch $@

check: all $(B)/tests/runner $(UNITS) $(B)/deps-check
	@sh tests/check.sh $(B) $(MODE)
bless: all
	@sh tests/golden.sh $(B) --bless && sh tests/errors.sh $(B) --bless
demo: all
	@$(MAKE) -C examples run BIN=$(abspath $(B)/bin) OUT=$(abspath $(B)/examples)
bench: all
	@sh tests/bench.sh $(B)
fuzz: $(FUZZERS)
install: all
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/jaxcc include share/man/man1)
	install $(B)/bin/jaxcc $(B)/bin/jaxcc-run $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(B)/libjaxcc_rt.a $(DESTDIR)$(PREFIX)/lib/jaxcc
	install -m 644 runtime/jaxcc.h $(DESTDIR)$(PREFIX)/include
	install -m 644 man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
format:
	clang-format -i $(wildcard compiler/*.[ch] compiler/*/*.[ch] compiler/*/*/*.[ch] runtime/*.[ch] tests/*.c tests/*/*.c examples/*.c)
tidy: $(B)/gen/parse.h
	clang-tidy-22 --quiet $(FRONT) $(BACK) $(RT) -- $(filter-out -MMD -MP,$(CFLAGS))
clean:
	rm -rf build
-include $(FRONT_O:.o=.d) $(BACK_O:.o=.d) $(RT_O:.o=.d) $(RUN_O:.o=.d) $(B)/compiler/main.d $(RUNNER_O:.o=.d) $(UNITS:=.d)
