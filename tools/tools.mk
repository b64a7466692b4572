# tools.mk - what is done with the build: install, uninstall, bench, lint.

# ---- install: DESTDIR and PREFIX; SETCAP=1 lets every user count in the kernel ---------------------------------------
CAPABILITIES := cap_bpf,cap_perfmon+ep
# The shim lies apart from the libraries that one links with: it is preloaded, never linked.
I := $(DESTDIR)$(PREFIX)
MAN := $(wildcard tools/man/*.[1-8])
man_place = share/man/man$(subst .,,$(suffix $(1)))/$(notdir $(1))
install: all
	install -d "$I/bin" "$I/lib/mach6" "$I/lib/pkgconfig" "$I/include"
	install -m 755 $B/mach6 $B/mach6-collector $B/mach6-dashboard "$I/bin/"
	install -m 755 $B/libmach6.so "$I/lib/mach6/"
	install -m 644 $B/libmach6stats.a "$I/lib/"
	install -m 755 $B/libmach6stats.so "$I/lib/libmach6stats.so.$(VERSION)"
	ln -sf libmach6stats.so.$(VERSION) "$I/lib/libmach6stats.so.0"
	ln -sf libmach6stats.so.0 "$I/lib/libmach6stats.so"
	install -m 644 preload/mach6.h collector/mach6_stats.h "$I/include/"
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' tools/mach6.pc.in >"$I/lib/pkgconfig/mach6.pc"
	$(foreach m,$(MAN),install -D -m 644 $m "$I/$(call man_place,$m)" &&) true
	$(if $(DESTDIR),,-[ "$$(id -u)" != 0 ] || ldconfig)
	$(if $(SETCAP),setcap $(CAPABILITIES) "$I/bin/mach6" && setcap $(CAPABILITIES) "$I/bin/mach6-collector")

# What `install` puts there, and no more; folders that others use, too, stay.
uninstall:
	if [ -d "$I" ]; then cd "$I" && rm -f bin/mach6 bin/mach6-collector bin/mach6-dashboard include/mach6.h include/mach6_stats.h \
	  lib/mach6/libmach6.so lib/pkgconfig/mach6.pc lib/libmach6stats.a lib/libmach6stats.so \
	  lib/libmach6stats.so.0 lib/libmach6stats.so.$(VERSION) $(foreach m,$(MAN),$(call man_place,$m)); fi
	-[ ! -d "$I/lib/mach6" ] || rmdir "$I/lib/mach6"
	$(if $(DESTDIR),,-[ "$$(id -u)" != 0 ] || ldconfig)

# ---- bench ----------------------------------------------------------------------------------------------------------
BENCH_C := $(wildcard tests/bench/*.c)
BENCH := $(patsubst tests/bench/%.c,$B/tests/bench/%,$(BENCH_C))
# Linked against what its /* links: */ line says, as the tests are.
$B/tests/bench/%: tests/bench/%.c $(wildcard tests/bench/*.h shm/*.h preload/*.h collector/*.h collector/*.c)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(TESTS_FLAGS) $(TESTS_WARN) -O2 $(call tests_word,flags,$<) -o $@ $< $(call tests_word,links,$<)
bench: all $(BENCH)
	@tests/bench/run $(BENCH_ARGS)

# ---- lint -----------------------------------------------------------------------------------------------------------
LINT_C := $(wildcard shm/*.h bpf/*.[ch] preload/*.[ch] collector/*.[ch] tools/mach6/*.[ch] tools/dashboard/*.[ch] tools/sample/*.[ch] tests/unit/*.[ch] \
  tests/programs/*.c tests/programs/*.cc tests/bench/*.[ch] tests/fuzz/*.[ch])
LINT_SH := tools/demo tools/setup tests/run tests/lib.sh .ci/run $(wildcard tests/bench/run tests/bench/diff tests/*/*.test) tests/fuzz/fuzz.sh
LINT_TIDY := $(wildcard preload/*.c collector/*.c tools/mach6/*.c tools/dashboard/*.c tools/sample/*.c)
TIDY_CHECKS := -*,bugprone-*,clang-analyzer-*,misc-redundant-expression,misc-unused-parameters
TIDY_CHECKS := $(TIDY_CHECKS),-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier
TIDY_CHECKS := $(TIDY_CHECKS),-bugprone-narrowing-conversions,-bugprone-assignment-in-if-condition
TIDY_CHECKS := $(TIDY_CHECKS),-bugprone-implicit-widening-of-multiplication-result,-bugprone-branch-clone
TIDY_CHECKS := $(TIDY_CHECKS),-clang-analyzer-security.insecureAPI.*
.PHONY: format lint-format lint-cppcheck lint-tidy lint-shell lint-man
lint: lint-format lint-cppcheck lint-tidy lint-shell lint-man
lint-format:
	$(call say,LINT,formatting)
	$Qclang-format --dry-run --Werror $(LINT_C)
# Puts the formatting right where lint-format finds fault.
format:
	clang-format -i $(LINT_C)
# Snapshots and dumps are bytes that are read as what their tables say: what invalidPointerCast calls unportable.
lint-cppcheck:
	$(call say,LINT,cppcheck)
	$Qcppcheck -q --std=c11 --language=c --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	  --suppress=missingIncludeSystem --suppress=invalidPointerCast --suppress=syntaxError:/usr/* -I. -D_GNU_SOURCE -D__x86_64__ \
	  -DMACH6_VERSION='"$(VERSION)"' $(wildcard preload collector tools/mach6 tools/dashboard tools/sample)
lint-tidy:
	$(call say,LINT,clang-tidy)
	$Qclang-tidy --quiet --warnings-as-errors='*' --checks='$(TIDY_CHECKS)' $(LINT_TIDY) -- -std=gnu11 -D_GNU_SOURCE -I. -I$B \
	  -DMACH6_VERSION='"$(VERSION)"' $$(pkg-config --cflags sdl2) 2>&1 | grep -v 'warnings generated\|Suppressed .* warnings\|^Use -header-filter' ; \
	  exit $${PIPESTATUS[0]}
lint-shell:
	$(call say,LINT,shellcheck)
	$Qshellcheck -x --severity=warning -e SC2034,SC2154 $(LINT_SH) # variables of a library that is sourced
lint-man:
	$(call say,LINT,manual pages)
	$(if $(MAN),$Qmandoc -T lint -W warning $(MAN))
lint-tidy: $B/syscall_names.h
lint-tidy: SHELL := /bin/bash
