/* payload_seconds.c - the key "seconds" of a report: what happened in each second, an array each. As payload_report.c;
 * times are whole nanoseconds, so that the numbers of a column sum up to what the session had.
 *
 * What the kernel and the sites counted is apart, and null where nothing was; a column of the kernel's without a source
 * is null in each row.
 */
#include <stddef.h>

#include "stats_kernel.h"
#include "stats_sites.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum kind { U64, I64, U32 };
/* COUNTERS: from any source. SWITCHES: not from /proc, which does not tell why. PROGRAMS: by those in the kernel. */
enum needs { NOTHING, COUNTERS, SWITCHES, PROGRAMS, SYSCALLS, FAULTS, SAMPLES };
struct column {
  const char *name;
  uint32_t offset;
  enum kind kind;
  enum needs needs;
};

#define COLUMN(name, member, kind, needs)                                                                              \
  {                                                                                                                    \
    name, offsetof(ROW, member), kind, needs                                                                           \
  }

#define ROW struct m6_snap_bucket
static const struct column seconds[] = {COLUMN("second", second, U64, NOTHING),
                                        COLUMN("frames", frames, U64, NOTHING),
                                        COLUMN("time_ns", time_sum, U64, NOTHING),
                                        COLUMN("longest_ns", time_max, U64, NOTHING),
                                        COLUMN("mem_delta_bytes", d, I64, NOTHING),
                                        COLUMN("inverse_mem_bytes", i, I64, NOTHING),
                                        COLUMN("allocs", allocs, U64, NOTHING),
                                        COLUMN("allocated_bytes", bytes, U64, NOTHING),
                                        COLUMN("frees", frees, U64, NOTHING),
                                        COLUMN("heap_bytes", live, I64, NOTHING),
                                        COLUMN("mapped_bytes", mapped, I64, NOTHING),
                                        COLUMN("records", records, U64, NOTHING),
                                        COLUMN("records_lost", lost, U64, NOTHING),
                                        COLUMN("stalls", stalls, U32, NOTHING),
                                        COLUMN("threads", threads, U32, NOTHING),
                                        COLUMN("collector_ns", collector_ns, U64, NOTHING),
                                        COLUMN("target_cpu_ns", target_cpu_ns, U64, NOTHING)};
#undef ROW

#define ROW struct m6_snap_kernel_second
#define OFF(e, name, text)                                                                                             \
  COLUMN(name "_ns", off_by[M6_WHY_##e], I64, M6_WHY_##e == M6_WHY_UNNAMED ? SWITCHES : PROGRAMS),
static const struct column kernel[] = {COLUMN("second", second, U64, NOTHING),
                                       COLUMN("covered_ns", covered, I64, NOTHING),
                                       COLUMN("elapsed_ns", elapsed, I64, COUNTERS),
                                       COLUMN("on_cpu_ns", on, I64, COUNTERS),
                                       COLUMN("run_queue_ns", wait, I64, COUNTERS),
                                       COLUMN("off_cpu_ns", off, I64, COUNTERS),
                                       M6_WHYS(OFF) COLUMN("syscalls", calls, I64, SYSCALLS),
                                       COLUMN("on_cpu_in_syscalls_ns", call_ns, I64, SYSCALLS),
                                       COLUMN("voluntary_switches", voluntary, I64, COUNTERS),
                                       COLUMN("involuntary_switches", involuntary, I64, COUNTERS),
                                       COLUMN("minor_faults", minor, I64, FAULTS),
                                       COLUMN("major_faults", major, I64, FAULTS),
                                       COLUMN("migrations", migrations, I64, PROGRAMS),
                                       COLUMN("slices", slices, I64, COUNTERS),
                                       COLUMN("samples", samples, I64, SAMPLES),
                                       COLUMN("periods", periods, I64, SAMPLES)};
#undef ROW

#define ROW struct m6_snap_site_second
static const struct column sites[] = {
  COLUMN("second", second, U64, NOTHING),   COLUMN("samples", samples, I64, NOTHING),
  COLUMN("dropped", dropped, I64, NOTHING), COLUMN("dropped_bytes", dropped_bytes, I64, NOTHING),
  COLUMN("maps", maps, I64, NOTHING),       COLUMN("maps_dropped", maps_dropped, I64, NOTHING)};
#undef ROW

static int has(const struct m6_snap_kernel *k, enum needs needs)
{
  switch (needs) {
  case COUNTERS: return k->counters != M6_KERNEL_NONE;
  case SWITCHES: return k->counters == M6_KERNEL_BPF || k->counters == M6_KERNEL_PERF;
  case PROGRAMS: return k->counters == M6_KERNEL_BPF;
  case SYSCALLS: return k->syscalls != 0;
  case FAULTS: return k->faults != M6_KERNEL_NONE;
  case SAMPLES: return k->samples != M6_KERNEL_NONE;
  default: return 1;
  }
}

static json_t *value(const char *at, enum kind kind)
{
  return kind == U64   ? m6_json_u64(*(const uint64_t *)at)
         : kind == I64 ? json_integer(*(const int64_t *)at)
                       : json_integer(*(const uint32_t *)at);
}

static json_t *table(const struct m6_snapshot *s, const struct column *c, size_t columns, uint64_t offset,
                     uint32_t count, size_t row_bytes)
{
  json_t *names = json_array(), *rows = json_array();
  for (size_t i = 0; i < columns; i++) json_array_append_new(names, json_string(c[i].name));
  for (uint32_t r = 0; r < count; r++) {
    const char *at = (const char *)s + offset + r * row_bytes;
    json_t *row = json_array();
    for (size_t i = 0; i < columns; i++)
      json_array_append_new(row, has(&s->kernel, c[i].needs) ? value(at + c[i].offset, c[i].kind) : json_null());
    json_array_append_new(rows, row);
  }
  return json_pack("{s:o, s:o}", "columns", names, "rows", rows);
}

json_t *m6_payload_seconds(const struct m6_snapshot *s)
{
  const struct m6_snap_kernel *k = &s->kernel;
  json_t *o = table(s, seconds, COUNT(seconds), s->buckets_offset, s->bucket_count, sizeof(struct m6_snap_bucket));
  json_object_set_new(o, "overwritten", m6_json_u64(s->buckets_overwritten));
  json_object_set_new(o, "kernel",
                      k->second_count ? table(s, kernel, COUNT(kernel), k->seconds_offset, k->second_count,
                                              sizeof(struct m6_snap_kernel_second))
                                      : json_null());
  json_object_set_new(o, "sites",
                      s->sites.second_count ? table(s, sites, COUNT(sites), s->sites.seconds_offset,
                                                    s->sites.second_count, sizeof(struct m6_snap_site_second))
                                            : json_null());
  return o;
}
