/* export_profiles.c - stacks with weights as text: folded, speedscope, JSON. See export_stacks.h for where they come
 * from.
 *
 * Formats: Brendan Gregg's folded stacks; speedscope's file-format-spec. Both have a number a stack and no place for
 * how sure it is: there the title says it of the sum. All are written as they are walked, so that the memory is that of
 * the stacks.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"

/* ---- what stacks are named
 * ---------------------------------------------------------------------------------------------- */

int export_title(const struct export_stacks *x, char *out, size_t room)
{
  const struct m6_snapshot *s = x->of->snap;
  int n = snprintf(out, room, "mach6, process %u: %s%s", s->pid, x->measure->what,
                   *x->why ? " (not the whole recording)" : "");
  if (x->measure->source != EXPORT_SITES || n < 0 || (size_t)n >= room) return n;
  if (x->measure->mapped) {
    n += snprintf(out + n, room - (size_t)n, "; every call but %" PRIu64, s->sites.maps_dropped);
    if ((size_t)n < room && !strcmp(x->measure->word, "mapped-live"))
      n += snprintf(out + n, room - (size_t)n, "; exactly %" PRId64 " by the books", s->mapped);
    return n;
  }
  if (s->sites.interval == 1 && !s->sites.dropped)
    return n + snprintf(out + n, room - (size_t)n, "; every allocation was recorded");
  if (s->sites.interval == 1)
    return n + snprintf(out + n, room - (size_t)n,
                        "; every allocation but %" PRIu64 ", which are missing and hold %" PRIu64 " bytes",
                        s->sites.dropped, s->sites.dropped_bytes);
  n += snprintf(out + n, room - (size_t)n, "; estimates from samples, one in %u bytes", s->sites.interval);
  if ((size_t)n < room && isfinite(x->all.low) && isfinite(x->all.high))
    n += snprintf(out + n, room - (size_t)n, ": %.0f bytes in all, 95 %% from %.0f to %.0f, standard error %.0f",
                  x->all.value, x->all.low, x->all.high, export_standard_error(x->measure, x->all));
  if ((size_t)n < room && !strcmp(x->measure->word, "bytes"))
    n += snprintf(out + n, room - (size_t)n, "; exactly %" PRIu64 " by the books", s->sites.exact_bytes);
  if ((size_t)n < room && !strcmp(x->measure->word, "live"))
    n += snprintf(out + n, room - (size_t)n, "; exactly %" PRId64 " by the books", s->sites.exact_live);
  if ((size_t)n < room && s->sites.dropped)
    n += snprintf(out + n, room - (size_t)n, "; %" PRIu64 " samples are missing", s->sites.dropped);
  return n;
}

/* ---- folded
 * --------------------------------------------------------------------------------------------------------------- */

/* A name in a stack: what the format uses itself, and what steers terminals, becomes '?'. */
static void folded_name(FILE *to, const char *name)
{
  for (; *name; name++) fputc(*name == ';' || (unsigned char)*name < 0x20 || *name == 0x7f ? '?' : *name, to);
}

static void folded_stack(FILE *to, const struct export_node **path, const struct export_node *n)
{
  uint32_t depth = n->depth;
  for (; n; n = n->key.parent) path[n->depth - 1] = n;
  for (uint32_t i = 0; i < depth; i++) {
    folded_name(to, path[i]->key.function->name);
    if (path[i]->key.function->kernel) fputs("_[k]", to);
    fputc(i + 1 < depth ? ';' : ' ', to);
  }
}

/* Room for the longest path; the caller's to free. */
static const struct export_node **path_of(const struct export_stacks *x)
{
  uint32_t most = 1;
  for (const struct export_node *n = x->nodes; n; n = n->hh.next)
    if (n->depth > most) most = n->depth;
  return malloc(most * sizeof(const struct export_node *));
}

int export_folded(const struct export_stacks *x, FILE *to)
{
  const struct export_node **path = path_of(x);
  int64_t unit = x->measure->unit == EXPORT_NS ? 1000 : 1; /* microseconds */
  if (!path) return ENOMEM;
  /* The format knows no remarks: a stack of its own says it, where every reader sees it. */
  if (*x->why) fputs("(not the whole recording) 1\n", to);
  for (uint32_t i = 0; i < x->count; i++) {
    if (x->stack[i].value < unit) continue;
    folded_stack(to, path, x->stack[i].node);
    fprintf(to, "%" PRId64 "\n", x->stack[i].value / unit);
  }
  free(path);
  return 0;
}

/* ---- JSON's parts
 * ------------------------------------------------------------------------------------------------------------ */

static int put_string(FILE *to, const char *text)
{
  json_t *o = json_string_nocheck(text);
  int error = !o || json_dumpf(o, to, JSON_ENCODE_ANY);
  json_decref(o);
  return error;
}

/* "name":value, with what goes before it; what is no number is null. */
static void put_real(FILE *to, const char *name, double v)
{
  if (isfinite(v)) fprintf(to, "%s%.17g", name, v);
  else fprintf(to, "%snull", name);
}

/* ---- speedscope
 * ---------------------------------------------------------------------------------------------------------------- */

static void speedscope_stack(FILE *to, const struct export_node **path, const struct export_node *n)
{
  uint32_t depth = n->depth;
  for (; n; n = n->key.parent) path[n->depth - 1] = n;
  for (uint32_t i = 0; i < depth; i++) fprintf(to, "%c%u", i ? ',' : '[', path[i]->key.function->index);
  fputc(']', to);
}

/* The stacks of one group, which come one after the other; the next group's first. */
static uint32_t speedscope_profile(const struct export_stacks *x, FILE *to, uint32_t from,
                                   const struct export_node **path)
{
  static const char *const units[] = {"nanoseconds", "bytes", "none", "none"};
  uint32_t end = from;
  int64_t each = x->ns_each ? (int64_t)x->ns_each : 1;
  double whole = 0;
  while (end < x->count && x->stack[end].group == x->stack[from].group) end++;
  fputs("{\"type\":\"sampled\",\"name\":", to);
  put_string(to, x->stack[from].group);
  fprintf(to, ",\"unit\":\"%s\",\"startValue\":0,\"samples\":[", x->ns_each ? units[0] : units[x->measure->unit]);
  for (uint32_t i = from; i < end; i++) {
    if (i > from) fputc(',', to);
    speedscope_stack(to, path, x->stack[i].node);
  }
  fputs("],\"weights\":[", to);
  for (uint32_t i = from; i < end; i++) {
    double weight = (double)x->stack[i].value * (double)each;
    fprintf(to, "%s%.0f", i > from ? "," : "", weight);
    whole += weight;
  }
  fprintf(to, "],\"endValue\":%.0f}", whole);
  return end;
}

int export_speedscope(const struct export_stacks *x, FILE *to)
{
  const struct export_node **path = path_of(x);
  char title[700];
  int error = 0;
  if (!path) return ENOMEM;
  export_title(x, title, sizeof title);
  fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"mach6 " MACH6_VERSION
        "\",\"name\":",
        to);
  error |= put_string(to, title);
  fputs(",\"shared\":{\"frames\":[", to);
  for (const struct export_function *f = x->functions; f; f = f->hh.next) {
    fputs(f->index ? ",\n{\"name\":" : "\n{\"name\":", to);
    error |= put_string(to, f->name);
    if (*f->file) fputs(",\"file\":", to), error |= put_string(to, f->file);
    if (f->line) fprintf(to, ",\"line\":%u", f->line);
    fputc('}', to);
  }
  fputs("]},\n\"profiles\":[", to);
  for (uint32_t i = 0; i < x->count;) {
    if (i) fputs(",\n", to);
    i = speedscope_profile(x, to, i, path);
  }
  fputs("]}\n", to);
  free(path);
  return error ? EIO : 0;
}

/* ---- JSON
 * -------------------------------------------------------------------------------------------------------------------------
 * */

static int json_line(FILE *to, const struct export_node *n, int first)
{
  const struct export_function *f = n->key.function;
  uint32_t line = n->key.line ? n->key.line : f->line;
  int error = 0;
  fputs(first ? "{\"function\":" : ",{\"function\":", to);
  error |= put_string(to, f->name);
  if (*f->module) fputs(",\"module\":", to), error |= put_string(to, f->module);
  if (*f->file) fputs(",\"file\":", to), error |= put_string(to, f->file);
  if (line) fprintf(to, ",\"line\":%u", line);
  if (n->key.inlined) fputs(",\"inlined\":true", to);
  fputc('}', to);
  return error;
}

static void json_value(FILE *to, const struct export_measure *m, struct export_value v)
{
  fprintf(to, "\"value\":%" PRId64, export_whole(v.value));
  put_real(to, ",\"low\":", v.low);
  put_real(to, ",\"high\":", v.high);
  put_real(to, ",\"standard_error\":", export_standard_error(m, v));
}

/* Stacks are innermost first, as in the report's sites. */
int export_stacks_json(const struct export_stacks *x, FILE *to)
{
  const struct m6_snapshot *s = x->of->snap;
  int sites = x->measure->source == EXPORT_SITES, error = 0;
  fprintf(to, "{\"mach6\":\"" MACH6_VERSION "\",\"of\":\"%s\",\"what\":\"%s\",\"unit\":\"%s\",\"whole\":%s,\"why\":",
          x->measure->word, x->measure->what, export_unit_name(x->measure->unit), *x->why ? "false" : "true");
  error |= put_string(to, x->why);
  if (x->ns_each) fprintf(to, ",\"ns_each\":%" PRIu64, x->ns_each);
  if (x->measure->mapped)
    fprintf(to,
            ",\"estimate\":%s,\"calls\":%" PRIu64 ",\"calls_missing\":%" PRIu64 ",\"missing_bytes\":%" PRIu64
            ",\"exact_live_bytes\":%" PRId64,
            s->sites.maps_dropped || s->sites.unmaps_dropped || s->sites.maps_untracked > 0 ? "true" : "false",
            s->sites.maps, s->sites.maps_dropped, s->sites.maps_dropped_bytes, s->mapped);
  else if (sites)
    fprintf(to,
            ",\"estimate\":%s,\"interval_bytes\":%u,\"samples_missing\":%" PRIu64 ",\"missing_bytes\":%" PRIu64
            ",\"exact_bytes\":%" PRIu64 ",\"exact_count\":%" PRIu64 ",\"exact_live_bytes\":%" PRId64,
            s->sites.interval > 1 || s->sites.dropped ? "true" : "false", s->sites.interval, s->sites.dropped,
            s->sites.dropped_bytes, s->sites.exact_bytes, s->sites.exact_count, s->sites.exact_live);
  fputs(",\"all\":{", to);
  json_value(to, x->measure, x->all);
  fputs("},\"stacks\":[", to);
  for (uint32_t i = 0; i < x->count; i++) {
    const struct export_stack *k = &x->stack[i];
    fputs(i ? ",\n{" : "\n{", to);
    json_value(to, x->measure, (struct export_value){(double)k->value, k->low, k->high});
    fputs(sites ? ",\"scope\":" : ",\"group\":", to);
    char *scope = sites ? export_scope(x, k->row) : NULL;
    if (sites && !scope) fputs("null", to);
    else error |= put_string(to, sites ? scope : k->group);
    free(scope);
    fputs(",\"stack\":[", to);
    for (const struct export_node *n = k->node; n; n = n->key.parent) error |= json_line(to, n, n == k->node);
    fputs("]}", to);
  }
  fputs("]}\n", to);
  return error ? EIO : 0;
}
