/* lost_exec.c - see lost_exec.h. */
#include "lost_exec.h"

#include <string.h>

#include "../shm/snapshot.h"

static uint32_t why(const struct m6_image *i)
{
  if (!i->exec) return M6_LOST_UNKNOWN;
  if (!(i->exec & M6_EXEC_PRELOAD)) return M6_LOST_PRELOAD;
  return i->exec & M6_EXEC_TOKEN ? M6_LOST_PROGRAM : M6_LOST_TOKEN;
}

void m6_lost_exec_add(struct m6_lost_execs *l, const struct m6_image *i, pid_t root)
{
  struct m6_lost_exec *to = &l->list[l->count];
  if (l->count < M6_LOST_KEPT) l->count++;
  else if (i->who.pid == root) to--;
  else return;
  memset(to, 0, sizeof *to);
  to->pid = i->who.pid;
  to->load_ns = i->who.load_ns;
  to->why = why(i);
  memcpy(to->from, i->who.name, sizeof to->from - 1);
  memcpy(to->to, i->became, sizeof to->to - 1);
}

void m6_lost_exec_found(struct m6_lost_execs *l, pid_t pid, uint64_t load_ns)
{
  size_t n = 0;
  for (size_t k = 0; k < l->count; k++)
    if (l->list[k].pid != pid || l->list[k].load_ns >= load_ns) l->list[n++] = l->list[k];
  l->count = n;
}

const struct m6_lost_exec *m6_lost_exec_of(const struct m6_lost_execs *l, const struct m6_image *i)
{
  for (size_t n = 0; n < l->count; n++)
    if (l->list[n].pid == i->who.pid && l->list[n].load_ns == i->who.load_ns) return &l->list[n];
  return NULL;
}

const struct m6_lost_exec *m6_lost_exec_first(const struct m6_lost_execs *l, const struct m6_image *i, pid_t root)
{
  const struct m6_lost_exec *own = m6_lost_exec_of(l, i);
  for (size_t n = 0; n < l->count && own == NULL; n++)
    if (l->list[n].pid == root) own = &l->list[n];
  return own || l->count == 0 ? own : &l->list[l->count - 1];
}
