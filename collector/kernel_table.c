/* kernel_table.c - the threads' entries in the array that the kernel's programs fill and user space has mapped
 * (bpf/counters.h). */
#include "kernel_table.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define TABLE_BYTES (M6_COUNTERS_THREADS * sizeof(struct m6_counters_thread))
_Static_assert(TABLE_BYTES % 65536 == 0, "whole pages");

int m6_table_map(struct m6_counters_inside *in, struct m6_fault *fault)
{
  int protection = PROT_READ | PROT_WRITE;
  in->table = mmap(NULL, TABLE_BYTES, protection, MAP_SHARED, m6_object_map(in->object, "m6_threads"), 0);
  if (in->table == MAP_FAILED) in->table = NULL;
  in->taken = in->table
                ? mmap(NULL, sizeof *in->taken, protection, MAP_SHARED, m6_object_map(in->object, "m6_taken"), 0)
                : MAP_FAILED;
  if (in->taken == MAP_FAILED) in->taken = NULL;
  return in->taken ? 0 : m6_fault_set(fault, errno, M6_AREA_BPF, "map", "the threads' counters");
}

void m6_table_unmap(struct m6_counters_inside *in)
{
  if (in->table) munmap(in->table, TABLE_BYTES);
  if (in->taken) munmap(in->taken, sizeof *in->taken);
  in->table = NULL;
  in->taken = NULL;
}

static uint32_t owner(const struct m6_counters_thread *e) { return __atomic_load_n(&e->tid, __ATOMIC_ACQUIRE); }

struct m6_counters_thread *m6_table_find(const struct m6_counters_inside *in, uint32_t tid)
{
  for (uint32_t i = 0; i < M6_COUNTERS_PROBES; i++) {
    struct m6_counters_thread *e = &in->table[m6_counters_place(tid, i)];
    if (owner(e) == tid) return e;
  }
  return NULL;
}

void m6_table_give_back(struct m6_counters_inside *in, struct m6_counters_thread *e)
{
  uint32_t at = (uint32_t)(e - in->table);
  memset((char *)e + sizeof e->tid, 0, sizeof *e - sizeof e->tid);
  __atomic_fetch_and(&in->taken->bits[at / 64], ~(1ull << at % 64), __ATOMIC_RELAXED);
  __atomic_store_n(&e->tid, 0, __ATOMIC_RELEASE);
}

/* As the kernel's programs make one. One of those can be making one of the same tid at this moment, which then lies
 * behind this one or before it: the first is found by both sides from then on, and the second is nobody's
 * (m6_table_is_second). */
void m6_table_put(struct m6_counters_inside *in, uint32_t tid, const struct m6_counters_thread *t)
{
  if (m6_table_find(in, tid)) return;
  for (uint32_t i = 0; i < M6_COUNTERS_PROBES; i++) {
    uint32_t at = m6_counters_place(tid, i), none = 0;
    struct m6_counters_thread *e = &in->table[at];
    if (!__atomic_compare_exchange_n(&e->tid, &none, M6_COUNTERS_FILLED, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      continue;
    memcpy((char *)e + sizeof t->tid, (const char *)t + sizeof t->tid, sizeof *t - sizeof t->tid);
    __atomic_fetch_or(&in->taken->bits[at / 64], 1ull << at % 64, __ATOMIC_RELAXED);
    __atomic_store_n(&e->tid, tid, __ATOMIC_SEQ_CST);
    return;
  } /* no room: counted when its first event comes */
}

int m6_table_copy(const struct m6_counters_thread *e, struct m6_counters_thread *out)
{
  for (int k = 0; k < 1000; k++) {
    uint32_t before = __atomic_load_n(&e->writing, __ATOMIC_ACQUIRE);
    memcpy(out, e, sizeof *out);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (!(before & 1) && __atomic_load_n(&e->writing, __ATOMIC_RELAXED) == before) break;
  }
  return out->tid && out->tid != M6_COUNTERS_FILLED && out->first_ns;
}

/* It is given back as soon as the program that made it has surely ended, which writes to it for less than a
 * microsecond. */
#define SECOND_NS 10000000
int m6_table_is_second(struct m6_counters_inside *in, struct m6_counters_thread *place, uint32_t tid, uint64_t now)
{
  if (m6_table_find(in, tid) == place) return 0;
  if (now > in->seeded_ns + SECOND_NS) m6_table_give_back(in, place);
  return 1;
}
