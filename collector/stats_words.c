/* stats_words.c - the tables behind stats_words.h. */
#include <stddef.h>

#include "../shm/layout.h"
#include "../shm/snapshot.h"
#include "stats_words.h"

#define PICK(table, i) ((i) < sizeof(table) / sizeof *(table) && (table)[i] ? (table)[i] : "?")

const char *m6_state_name(uint32_t i)
{
  static const char *const t[] = {[M6_INERT] = "inert", [M6_COLLECTING] = "collecting", [M6_ENDED] = "ended"};
  return PICK(t, i);
}
const char *m6_end_name(uint32_t i)
{
  static const char *const t[] = {[M6_END_NONE] = "none",     [M6_END_OFF] = "off",
                                  [M6_END_TTL] = "ttl",       [M6_END_EXIT] = "exit",
                                  [M6_END_EXEC] = "exec",     [M6_END_FAILURE] = "failure",
                                  [M6_END_BUDGET] = "budget", [M6_END_COLLECTOR_LOST] = "collector_lost"};
  return PICK(t, i);
}
const char *m6_end_text(uint32_t i)
{
  static const char *const t[] = {
    [M6_END_NONE] = "still running",
    [M6_END_OFF] = "stopped on request",
    [M6_END_TTL] = "its time was up",
    [M6_END_EXIT] = "the program ended",
    [M6_END_EXEC] = "the program became another one (exec)",
    [M6_END_COLLECTOR_LOST] = "the collector fell silent",
    [M6_END_FAILURE] = "the program's shared memory was cut off, or is not what a shim writes",
    [M6_END_BUDGET] = "mach6 cost more than its budget, at the lowest level too",
  };
  return PICK(t, i);
}
const char *m6_lost_name(uint32_t i)
{
  static const char *const t[] = {[M6_LOST_UNKNOWN] = "unknown",
                                  [M6_LOST_PRELOAD] = "preload",
                                  [M6_LOST_TOKEN] = "token",
                                  [M6_LOST_PROGRAM] = "program"};
  return PICK(t, i);
}
const char *m6_lost_text(uint32_t i)
{
  static const char *const t[] = {
    [M6_LOST_UNKNOWN] = "that is not known",
    [M6_LOST_PRELOAD] = "LD_PRELOAD no longer named libmach6.so: let it keep LD_PRELOAD and MACH6_RUN",
    [M6_LOST_TOKEN] = "it had lost MACH6_RUN: let it keep LD_PRELOAD and MACH6_RUN",
    [M6_LOST_PROGRAM] =
      "LD_PRELOAD was there: a static or privileged program, or one for another kind of machine, ignores it; one whose "
      "/dev/shm is full makes no segment, and one with a /dev/shm of its own may be over before it is found",
  };
  return PICK(t, i);
}
const char *m6_level_name(uint32_t i)
{
  static const char *const t[] = {[M6_LEVEL_MEMORY] = "memory", [M6_LEVEL_LITE] = "lite", [M6_LEVEL_FULL] = "full"};
  return PICK(t, i);
}
const char *m6_clock_name(uint32_t i)
{
  static const char *const t[] = {[M6_CLOCK_MONOTONIC] = "monotonic", [M6_CLOCK_TSC] = "tsc"};
  return PICK(t, i);
}
const char *m6_verdict_name(int32_t v)
{
  static const char *const t[] = {[M6_VERDICT_UNKNOWN] = "unknown",
                                  [M6_VERDICT_STEADY] = "steady",
                                  [M6_VERDICT_GROWS] = "grows",
                                  [M6_VERDICT_SHRINKS] = "shrinks"};
  return v < 0 ? "?" : PICK(t, (uint32_t)v);
}
const char *m6_node_kind_name(uint32_t i)
{
  static const char *const t[] = {
    [M6_NODE_ROOT] = "root",         [M6_NODE_STARTUP] = "startup", [M6_NODE_FRAME] = "frame",
    [M6_NODE_SHUTDOWN] = "shutdown", [M6_NODE_THREAD] = "thread",   [M6_NODE_SCOPE] = "scope"};
  return PICK(t, i);
}
const char *m6_alloc_kind_name(uint32_t i)
{
#define WORD(k) #k,
  static const char *const t[] = {M6_ALLOC_KINDS(WORD)};
#undef WORD
  return PICK(t, i);
}

const struct m6_unseen_word *m6_unseen_words(unsigned *count)
{
  static const struct m6_unseen_word t[] = {
    {M6_UNSEEN_MALLOC_NOT_FIRST, "malloc_not_first",
     "another allocator comes before mach6's: allocations are not counted; preload mach6 first"},
    {M6_UNSEEN_DEEPBIND, "deepbind",
     "a library was loaded with RTLD_DEEPBIND: its allocations and frees may be unseen, so that what it "
     "frees seems to stay"},
    {M6_UNSEEN_NAMESPACE, "namespace", "dlmopen was called: the heap of a second libc is unseen"},
    {M6_UNSEEN_OWN_NEW, "own_new", "the program has its own operator new: what its pool holds is unseen"},
    {M6_UNSEEN_SIZES, "sizes",
     "the next allocator in line has no malloc_usable_size: calls are counted, bytes are not"},
    {M6_UNSEEN_PROC_ROUTE, "proc_route", "a present was reached by a route with no place left: its frames are unseen"},
    {M6_UNSEEN_NO_SHIM, "no_shim",
     "the program runs without the shim (--frame-symbol): frame times and what the kernel knows are here, allocations "
     "and scopes are not"},
    {M6_UNSEEN_PRESENT_NOT_FIRST, "present_not_first",
     "another preload's present or dlsym comes before mach6: frames may be unseen; put libmach6.so first in "
     "LD_PRELOAD"},
  };
  *count = sizeof t / sizeof *t;
  return t;
}

const struct m6_loss_word *m6_loss_words(unsigned *count)
{
#define AT(member) offsetof(struct m6_snapshot, member)
  static const struct m6_loss_word t[] = {
    {"records_lost", "records that did not fit into their ring (scopes are missing from the tree, totals are not)",
     AT(records_lost)},
    {"holes", "records that their thread never finished", AT(holes)},
    {"frames_lost", "frames without a record of their own (their time and memory are in the next one's)",
     AT(frames_lost)},
    {"labels_refused", "marks that found no room for their label and are under (other)", AT(labels_refused)},
    {"streams_refused", "presents from windows beyond the most that are told apart", AT(streams_refused)},
    {"slots_refused", "threads without counters of their own (they share those of slot 0)", AT(slots_refused)},
    {"rings_refused", "threads without a ring (their scopes are unseen)", AT(rings_refused)},
    {"nodes_refused", "scopes that found the tree full and are under (other)", AT(nodes_refused)},
    {"underflows", "done without a mark", AT(underflows)},
    {"abandoned", "scopes left without done (longjmp, a throw, the end of a thread)", AT(abandoned)},
    {"bad_records", "records that made no sense and were passed over", AT(bad_records)},
    {"frames_overwritten", "frame records overwritten by later ones (what is kept is not the whole run)",
     AT(frames_overwritten)},
    {"buckets_overwritten", "seconds overwritten by later ones", AT(buckets_overwritten)},
    {"growth_overwritten", "memory-growth events overwritten by later ones", AT(growth_overwritten)},
    {"stalls_overwritten", "stalls overwritten by later ones", AT(stalls_overwritten)},
  };
#undef AT
  *count = sizeof t / sizeof *t;
  return t;
}

uint64_t m6_loss_of(const struct m6_snapshot *s, const struct m6_loss_word *w)
{
  return *(const uint64_t *)((const char *)s + w->offset);
}
