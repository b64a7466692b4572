# mach6: `make` builds all of it into build/. Each part's sources are the files in its folder; no list to keep.
#   make            the shim, the collector, the tools, the sample game
#   make check      build and run the tests that need nothing installed (tests/run installs and runs all)
#   make tests      only build them
#   make fuzz       the readers of foreign bytes, longer than the tests do (FUZZ_S=600 seconds each)
#   make bench      measurements, as JSON lines
#   make lint       warnings, static analysis, formatting
#   make format     put the formatting right
#   make install    PREFIX=/usr/local DESTDIR= SETCAP=1 (gives mach6 and the collector CAP_BPF and CAP_PERFMON)
#   make uninstall  take away what install put there, with the same PREFIX and DESTDIR
#   make clean      remove build/
#   make help       this table

PREFIX ?= /usr/local
VERSION := 0.1.0
B := build
CFLAGS ?= -O2 -g
CXXFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
BASE := -std=gnu11 -D_GNU_SOURCE -DMACH6_VERSION='"$(VERSION)"' -I. -pthread -MMD -MP
Q := $(if $(V),,@)

.DELETE_ON_ERROR:
.PHONY: all check bench lint install uninstall clean help
all:
help:
	@sed -n 's/^#   \(make\)/\1/p' Makefile
	@echo 'Variables: CC, CLANG, CFLAGS, CXXFLAGS, LDFLAGS; V=1 shows each command.'

# One short line a step.
define say
	@printf '  %-4s %s\n' '$(1)' '$(2)'
endef

# ---- preload/: the shim. libc alone, nothing exported but what is marked -------------------------------------------
SHIM_C := $(wildcard preload/*.c)
SHIM_S := $(wildcard preload/*.S)
SHIM_O := $(SHIM_C:%.c=$B/%.o) $(SHIM_S:%.S=$B/%.S.o)
SHIM_FLAGS := $(BASE) $(WARN) $(CFLAGS) -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt -fno-builtin-malloc \
  -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free -fno-builtin-posix_memalign \
  -fno-builtin-aligned_alloc -fno-stack-protector -fexceptions $(FREE_SIZED)
# C23's free_sized is exported only where libc has it: a program that asks whether it exists must get libc's answer.
FREE_SIZED := $(shell printf 'void free_sized(void *, unsigned long); int main(void) { free_sized(0, 0); }' | \
  $(CC) -x c -o /dev/null - 2>/dev/null && echo -DM6_FREE_SIZED)
$B/preload/%.o: preload/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$Q$(CC) $(SHIM_FLAGS) -c -o $@ $<
$B/preload/%.S.o: preload/%.S
	$(call say,AS,$<)
	@mkdir -p $(@D)
	$Q$(CC) -I. -MMD -MP -c -o $@ $<
$B/libmach6.so: $(SHIM_O) preload/libmach6.map
	$(call say,LD,$@)
	$Q$(CC) -shared -o $@ $(SHIM_O) $(LDFLAGS) -Wl,-z,defs -Wl,-z,now -Wl,--as-needed \
	  -Wl,--version-script=preload/libmach6.map
$(if $(SHIM_C),$(eval all: $B/libmach6.so))

# ---- bpf/: programs that run in the kernel, compiled once for every kernel, and embedded ---------------------------------
# Structs are declared by hand and relocated when loaded (CO-RE): neither root nor the build machine's BTF is asked for.
CLANG ?= clang
BPF_C := $(wildcard bpf/*.bpf.c)
BPF_O := $(BPF_C:bpf/%.bpf.c=$B/bpf/%.embed.o)
BPF_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(shell uname -m)))
BPF_FLAGS := --target=bpf -D__TARGET_ARCH_$(BPF_ARCH) -std=gnu11 -I/usr/include/$(shell $(CC) -print-multiarch) -Wall -Wextra -Wno-unused-parameter \
  -Werror -O2 -g -mcpu=v2 -ffile-prefix-map="$$PWD"=. -fdebug-compilation-dir=.
# Atomic operations that give the old value: kernels from 5.12 on.
$B/bpf/samples.bpf.o $B/bpf/counters.bpf.o: BPF_FLAGS += -mcpu=v3
$B/bpf/%.bpf.o: bpf/%.bpf.c
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$Q$(CLANG) $(BPF_FLAGS) -MMD -MP -c -o $@ $<
.SECONDARY: $(BPF_C:%.bpf.c=$B/%.bpf.o)
$B/bpf/%.embed.o: bpf/embed.S $B/bpf/%.bpf.o
	@mkdir -p $(@D)
	$Q$(CC) -DNAME=$* -DOBJECT='"$B/bpf/$*.bpf.o"' -c -o $@ $<

# ---- collector/: mach6-collector (main.c), and libmach6stats, the pure parts that tools and games link ---------------
# A file of the collector's folder belongs to the library when its name begins with stats_ or is listed here.
STATS_C := $(strip $(wildcard collector/stats*.c) $(wildcard collector/payload*.c) collector/budgets.c collector/utf8.c \
  $(filter-out collector/dump_write.c collector/dump_io.c,$(wildcard collector/dump_*.c)))
# The kernel side (kernel_*.c, with the programs of bpf/, and names for what it samples) is an archive of its own: the
# collector and mach6 link it.
KERNEL_C := $(filter-out collector/kernel_side%.c,$(wildcard collector/kernel_*.c collector/symbols*.c collector/profile.c \
  collector/sample_join.c))
COLL_C := $(filter-out $(STATS_C) $(KERNEL_C),$(wildcard collector/*.c))
STATS_O := $(STATS_C:%.c=$B/%.o)
KERNEL_O := $(KERNEL_C:%.c=$B/%.o)
COLL_O := $(COLL_C:%.c=$B/%.o)
STATS_LIBS := -ljansson -lmsgpackc -lm
MACH6_LIBS := -lz
KERNEL_LIBS := -lbpf -ldw -lelf -liberty -ldl
COLL_LIBS := -lelf -luring -lmsgpackc -lm
$B/collector/%.o: collector/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$Q$(CC) $(BASE) $(WARN) $(CFLAGS) -fPIC -c -o $@ $<
# Names of system calls, by number, of the machine that this is built for.
$B/syscall_names.h:
	@mkdir -p $(@D)
	$Qprintf '#include <sys/syscall.h>\n' | $(CC) -E -dM - | \
	  sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9]*\)$$/[\2] = "\1",/p' >$@
$B/collector/kernel_side_view.o: $B/syscall_names.h
$B/collector/kernel_side_view.o: BASE += -I$B
$B/libmach6stats.a: $(STATS_O)
	$(call say,AR,$@)
	$Qrm -f $@ && $(AR) rcs $@ $^
$B/libmach6stats.so: $(STATS_O)
	$(call say,LD,$@)
	$Q$(CC) -shared -Wl,-soname,libmach6stats.so.0 -o $@ $^ $(LDFLAGS) $(STATS_LIBS)
$B/libmach6kernel.a: $(KERNEL_O) $(BPF_O)
	$(call say,AR,$@)
	$Qrm -f $@ && $(AR) rcs $@ $^
$B/mach6-collector: $(COLL_O) $B/libmach6stats.a $B/libmach6kernel.a
	$(call say,LD,$@)
	$Q$(CC) -pthread -o $@ $^ $(LDFLAGS) -Wl,--as-needed $(KERNEL_LIBS) $(COLL_LIBS)
$(if $(KERNEL_C),$(eval all: $B/libmach6kernel.a))
$(if $(STATS_C),$(eval all: $B/libmach6stats.a $B/libmach6stats.so))
$(if $(COLL_C),$(eval all: $B/mach6-collector))

# ---- tools/: mach6 (tools/mach6/*.c), its dashboard (tools/dashboard/*.c), the sample game (tools/sample/*.c) ------------
MACH6_C := $(wildcard tools/mach6/*.c)
MACH6_O := $(MACH6_C:%.c=$B/%.o)
# A program of its own: libwebsockets brings libraries along that the other commands need not load.
DASHBOARD_C := $(wildcard tools/dashboard/*.c)
DASHBOARD_O := $(DASHBOARD_C:%.c=$B/%.o) $(addprefix $B/tools/mach6/,explain.o ps_words.o reach.o say.o)
SAMPLE_C := $(wildcard tools/sample/*.c)
SAMPLE_O := $(SAMPLE_C:%.c=$B/%.o)
$B/tools/mach6/%.o: tools/mach6/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$Q$(CC) $(BASE) $(WARN) $(CFLAGS) -c -o $@ $<
$B/tools/mach6/export_flame.o: tools/mach6/flame.js
$B/tools/dashboard/%.o: tools/dashboard/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$Q$(CC) $(BASE) $(WARN) $(CFLAGS) $$(pkg-config --cflags libwebsockets) -c -o $@ $<
$B/tools/dashboard/answer.o: tools/dashboard/page.html
$B/tools/sample/%.o: tools/sample/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$Q$(CC) $(BASE) $(WARN) $(CFLAGS) $$(pkg-config --cflags sdl2) -c -o $@ $<
$B/mach6: $(MACH6_O) $B/libmach6stats.a $B/libmach6kernel.a
	$(call say,LD,$@)
	$Q$(CC) -pthread -o $@ $^ $(LDFLAGS) $(STATS_LIBS) $(KERNEL_LIBS) $(MACH6_LIBS)
$B/mach6-dashboard: $(DASHBOARD_O) $B/libmach6stats.a
	$(call say,LD,$@)
	$Q$(CC) -pthread -o $@ $^ $(LDFLAGS) -Wl,--as-needed $$(pkg-config --libs libwebsockets) $(STATS_LIBS)
$B/mach6-sample: $(SAMPLE_O)
	$(call say,LD,$@)
	$Q$(CC) -pthread -o $@ $^ $(LDFLAGS) $$(pkg-config --libs sdl2) -lm
$(if $(wildcard tools/mach6/main.c),$(eval all: $B/mach6))
$(if $(DASHBOARD_C),$(eval all: $B/mach6-dashboard))
$(if $(SAMPLE_C),$(eval all: $B/mach6-sample))

-include tests/tests.mk tools/tools.mk
-include $(shell find $B -name '*.d' 2>/dev/null)

clean:
	rm -rf $B
