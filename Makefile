# jaxcc: `make` builds build/bin/jaxcc, build/bin/jaxcc-run and the runtime archive.
MODE ?= release
LLVM ?= /usr/lib/llvm-22
B ?= build/$(MODE)
CFLAGS.release = -O2
CFLAGS.debug = -O0 -g
CFLAGS.asan = -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer
CFLAGS = -std=c17 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wno-unused-parameter -MMD -MP $(CFLAGS.$(MODE))
INC = -I. -Icompiler -I$(B) -I$(B)/gen -isystem $(LLVM)/include
FRONT = $(wildcard compiler/*.c compiler/parse/*.c compiler/typecheck/*.c compiler/passes/*.c)
BACK = $(wildcard compiler/codegen/*.c)
FRONT_O = $(patsubst %.c,$(B)/%.o,$(filter-out compiler/main.c,$(FRONT))) $(B)/gen/lex.o $(B)/gen/parse.o $(B)/gen/stdlib.o
BACK_O = $(patsubst %.c,$(B)/%.o,$(BACK))
all: $(B)/bin/jaxcc

$(B)/%.o: %.c | $(B)/gen/parse.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(INC) -c $< -o $@
$(B)/gen/parse.h: compiler/parse/parse.y
	@mkdir -p $(@D)
	bison -Wall --defines=$@ -o $(B)/gen/parse.c $<
$(B)/gen/lex.c: compiler/parse/lex.l
	@mkdir -p $(@D)
	flex -o $@ $<
$(B)/gen/%.o: $(B)/gen/%.c
	$(CC) $(CFLAGS) -w $(INC) -Icompiler/parse -c $< -o $@
$(B)/libjaxcc.a: $(FRONT_O)
	rm -f $@; ar rcs $@ $^
-include $(FRONT_O:.o=.d) $(BACK_O:.o=.d)
