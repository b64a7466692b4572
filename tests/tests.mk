# tests.mk - builds the tests by convention, so that a new test needs no line here.
#   tests/unit/test_*.c      -> build/tests/unit/NAME   cmocka; also build/tests/asan/NAME (address, undefined) and build/tests/tsan/NAME
#   tests/programs/*.c *.cc  -> build/tests/programs/NAME; a file named lib*.c or lib*.cc becomes lib*.so
# A source says what else it wants in comments of this form, among its first 15 lines; a word may come again on the next line:
#   /* links: collector/tree.c -lm */      sources and libraries to build it with
#   /* flags: -O0 -fno-builtin */          compiler flags; words with a dollar are quoted: -Wl,-rpath,'$ORIGIN'
#   /* needs: libfake.so */                other files of build/tests/programs that must be built first
#   /* sanitizers: none */                 a unit test that must not be built with them (default: address thread)

# $(call tests_word,links,FILE): the words of such a line.
tests_word = $(shell sed -n '1,15s,.*/\* *$(1): *\(.*[^ ]\) *\*/.*,\1,p' $(2))

TESTS_HEADERS := $(wildcard shm/*.h bpf/*.h preload/*.h collector/*.h tests/unit/*.h tests/programs/*.h tests/fuzz/*.h)
TESTS_UNIT := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
TESTS_PROGRAMS := $(wildcard tests/programs/*.c tests/programs/*.cc)
TESTS_FLAGS := -std=gnu11 -D_GNU_SOURCE -DMACH6_VERSION='"$(VERSION)"' -I. -Ipreload -Icollector -pthread -g
TESTS_WARN := -Wall -Wextra -Werror -Wno-unused-parameter
TESTS_ASAN := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
TESTS_TSAN := -O1 -fno-omit-frame-pointer -fsanitize=thread -Wno-tsan
TESTS_BUILT :=

# $(call tests_unit,NAME,VARIANT,FLAGS)
define tests_unit
$B/tests/$(2)/$(1): tests/unit/$(1).c $$(filter %.c %.S %.a,$$(links_$(1))) $$(TESTS_HEADERS)
	$$(call say,TEST,$$@)
	@mkdir -p $$(@D)
	$$Q$$(CC) $$(TESTS_FLAGS) $$(TESTS_WARN) $(3) $$(call tests_word,flags,$$<) -o $$@ $$< $$(links_$(1)) -lcmocka
TESTS_BUILT += $B/tests/$(2)/$(1)
endef
$(foreach t,$(TESTS_UNIT),$(eval links_$t := $$(call tests_word,links,tests/unit/$t.c)) \
  $(eval san_$t := $$(or $$(call tests_word,sanitizers,tests/unit/$t.c),address thread)) \
  $(eval $(call tests_unit,$t,unit,-O2)) \
  $(if $(filter address,$(san_$t)),$(eval $(call tests_unit,$t,asan,$(TESTS_ASAN)))) \
  $(if $(filter thread,$(san_$t)),$(eval $(call tests_unit,$t,tsan,$(TESTS_TSAN)))))

# $(call tests_program,SOURCE,OUTPUT,COMPILER)
define tests_program
$(2): $(1) $$(filter %.c %.S %.a,$$(call tests_word,links,$(1))) $$(addprefix $B/tests/programs/,$$(call tests_word,needs,$(1))) $$(TESTS_HEADERS)
	$$(call say,TEST,$$@)
	@mkdir -p $$(@D)
	$$Q$(3) $$(TESTS_WARN) $(if $(filter lib%,$(notdir $(1))),-shared -fPIC) $$(call tests_word,flags,$(1)) -o $$@ $$< $$(call tests_word,links,$(1))
TESTS_BUILT += $(2)
endef
tests_output = $B/tests/programs/$(basename $(notdir $(1)))$(if $(filter lib%,$(notdir $(1))),.so)
$(foreach p,$(filter %.c,$(TESTS_PROGRAMS)),$(eval $(call tests_program,$p,$(call tests_output,$p),$$(CC) -O2 $$(TESTS_FLAGS))))
$(foreach p,$(filter %.cc,$(TESTS_PROGRAMS)),$(eval $(call tests_program,$p,$(call tests_output,$p),$$(CXX) -O2 -std=gnu++17 -D_GNU_SOURCE -I. -Ipreload -pthread -g)))

# tests/fuzz/fuzz_*.c -> build/tests/fuzz/NAME, where clang has libFuzzer; tests/fuzz/*.test run them. A word of its own for `links`.
FUZZ_C := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ := $(FUZZ_C:tests/fuzz/%.c=$B/tests/fuzz/%)
HAS_FUZZER := $(shell echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return 0 * (p != 0) * n; }' | \
  $(CLANG) -x c -fsanitize=fuzzer,address,undefined -o /dev/null - 2>/dev/null && echo yes)
$B/tests/fuzz/%: tests/fuzz/%.c $(wildcard collector/*.c tools/mach6/*.[ch]) $(TESTS_HEADERS)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$Q$(CLANG) $(TESTS_FLAGS) -O1 -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	  -o $@ $< $(call tests_word,links,$<)
TESTS_BUILT += $(if $(HAS_FUZZER),$(FUZZ))
# Longer: make fuzz FUZZ_S=3600. What it learns is kept in build/fuzz.
.PHONY: fuzz
FUZZ_S ?= 600
fuzz: tests
	MACH6_FUZZ_S=$(FUZZ_S) MACH6_FUZZ_CORPUS="$$PWD/$B/fuzz" tests/fuzz/dump.test
	MACH6_FUZZ_S=$(FUZZ_S) MACH6_FUZZ_CORPUS="$$PWD/$B/fuzz" tests/fuzz/segment.test
	MACH6_FUZZ_S=$(FUZZ_S) MACH6_FUZZ_CORPUS="$$PWD/$B/fuzz" tests/fuzz/sites.test

.PHONY: tests
tests: all $(TESTS_BUILT)

check:
	tests/run --no-setup --quick
