/* export_flame.c - stacks with weights as a flame graph: one SVG file that needs no server and no network, of our own
 * making.
 *
 * The outermost function is on top; a frame is as wide as what was measured in it and below it, the widest first,
 * coloured by module. The file alone is a readable picture; in a browser flame.js adds zoom, search and details. Names
 * are whatever a dump holds: what XML has a meaning for is escaped, what it does not allow, and what turns text around,
 * becomes U+FFFD.
 * Frames thinner than THINNEST of the whole, and deeper than DEEPEST, are left out and counted. (The picture's idea: B.
 * Gregg 2011.)
 */
#define HASH_NONFATAL_OOM 1
#include "export.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define WIDTH 1200.0 /* flame.js knows it, too */
#define ROW 17
#define THINNEST 5e-5
#define DEEPEST 500u
#define LEGEND 8

__asm__(".section .rodata\n"
        "flame_script: .incbin \"tools/mach6/flame.js\"\n"
        "flame_script_end: .balign 4\n"
        "flame_script_bytes: .long flame_script_end - flame_script\n"
        ".previous\n");
extern const char flame_script[];
extern const uint32_t flame_script_bytes;

struct box {
  const struct export_node *node;
  double sum, self;
  double variance;       /* of the sum's estimate, in half-widths of 95 %; NAN when not known */
  uint32_t first, count; /* children in `order` */
};
struct module {
  const char *name;
  double self;
};
struct flame {
  const struct export_stacks *x;
  FILE *to;
  struct page page;
  struct box *box;    /* by node index + 1; [0] is all of it */
  struct box **order; /* siblings together, the widest first */
  uint32_t count;
  double all;
  uint64_t left_out;
  int top; /* y of the first row */
};

/* ---- the tree
 * -------------------------------------------------------------------------------------------------------------- */

static uint32_t parent_of(const struct box *b) { return b->node->key.parent ? b->node->key.parent->index + 1 : 0; }

static int siblings_by_width(const void *a, const void *b)
{
  const struct box *x = *(const struct box *const *)a, *y = *(const struct box *const *)b;
  uint32_t px = parent_of(x), py = parent_of(y);
  if (px != py) return px < py ? -1 : 1;
  if (x->sum != y->sum) return x->sum > y->sum ? -1 : 1;
  return x->node->index < y->node->index ? -1 : x->node->index > y->node->index;
}

static void plant(struct flame *f)
{
  const struct export_stacks *x = f->x;
  uint32_t n = f->count;
  for (const struct export_node *i = x->nodes; i; i = i->hh.next) {
    f->box[i->index + 1].node = i;
    f->order[i->index] = &f->box[i->index + 1];
  }
  for (uint32_t i = 0; i < x->count; i++) {
    const struct export_stack *k = &x->stack[i];
    struct box *b = &f->box[k->node->index + 1];
    double half = (k->high - k->low) / 2;
    b->self += (double)k->value;
    b->sum += (double)k->value;
    b->variance += half * half;
  }
  for (uint32_t i = n; i-- > 0;) { /* children come after their parents */
    struct box *b = &f->box[i + 1], *up = &f->box[parent_of(b)];
    up->sum += b->sum;
    up->variance += b->variance;
  }
  f->all = f->box[0].sum;
  qsort(f->order, n, sizeof(struct box *), siblings_by_width);
  for (uint32_t i = n; i-- > 0;) {
    struct box *up = &f->box[parent_of(f->order[i])];
    up->first = i;
    up->count++;
  }
}

/* ---- text
 * --------------------------------------------------------------------------------------------------------------------
 * */

/* The character at s, which is valid UTF-8; its length in *n. */
static uint32_t character(const unsigned char *s, unsigned *n)
{
  *n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  uint32_t c = *n == 1 ? s[0] : s[0] & (0xffu >> (*n + 1));
  for (unsigned i = 1; i < *n; i++) c = c << 6 | (s[i] & 0x3f);
  return c;
}

/* At most `most` characters, escaped; an ellipsis for the rest. */
static void put(FILE *to, const char *text, unsigned most)
{
  unsigned n;
  for (const unsigned char *s = (const unsigned char *)text; *s; s += n) {
    uint32_t c = character(s, &n);
    if (most-- == 0) {
      fputs("\xe2\x80\xa6", to);
      return;
    }
    int bad = c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
              (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c & 0xfffe) == 0xfffe;
    if (bad) fputs("\xef\xbf\xbd", to);
    else if (c == '&') fputs("&amp;", to);
    else if (c == '<') fputs("&lt;", to);
    else if (c == '>') fputs("&gt;", to);
    else if (c == '"') fputs("&quot;", to);
    else fwrite(s, 1, n, to);
  }
}

static const char *amount(const struct flame *f, double v)
{
  switch (f->x->measure->unit) {
  case EXPORT_NS: return t_time(&f->page, v / 1e9);
  case EXPORT_BYTES: return t_bytes(v);
  default: return t_count((uint64_t)v);
  }
}

/* "1.4 MiB ± 97.7 KiB (25 %), self 0 B" */
static void numbers(const struct flame *f, const struct box *b)
{
  const struct export_stacks *x = f->x;
  fputs(amount(f, b->sum), f->to);
  if (b->variance > 0 && isfinite(b->variance)) fprintf(f->to, " \xc2\xb1 %s", amount(f, sqrt(b->variance)));
  if (x->measure->unit >= EXPORT_BLOCKS) fprintf(f->to, " %s", export_unit_name(x->measure->unit));
  if (x->ns_each) fprintf(f->to, ", %s", t_time(&f->page, b->sum * (double)x->ns_each / 1e9));
  fprintf(f->to, " (%s)", t_ratio(f->all > 0 ? b->sum / f->all : 0));
  if (b->node && b->self > 0) fprintf(f->to, ", self %s", amount(f, b->self));
}

/* ---- colours
 * ------------------------------------------------------------------------------------------------------------------ */

/* FNV-1a (Fowler, Noll, Vo 1991). */
static uint32_t hash(const char *s)
{
  uint32_t h = 2166136261u;
  for (; *s; s++) h = (h ^ (unsigned char)*s) * 16777619u;
  return h ^ h >> 15;
}

/* A light colour, for black text: the hue is the module's (what has none: its own name's), the lightness differs by
 * function. */
static void colour(const char *module, const char *function, char out[8])
{
  double hue = hash(*module ? module : function) % 360 / 60.0, light = 0.70 + hash(function) % 16 / 100.0;
  double chroma = (1 - fabs(2 * light - 1)) * 0.75, low = light - chroma / 2;
  int rgb[3];
  for (int i = 0; i < 3; i++) {
    double at = fmod(hue + 6 - 2 * i, 6); /* how far from this colour's own hue */
    double part = at < 1 || at > 5 ? 1 : at < 2 ? 2 - at : at > 4 ? at - 4 : 0;
    rgb[i] = (int)((low + chroma * part) * 255);
  }
  if (*module == '[' && strcmp(module, "[kernel]") != 0) rgb[0] = rgb[1] = rgb[2] = 208; /* threads, scopes */
  snprintf(out, 8, "#%02x%02x%02x", rgb[0] & 255, rgb[1] & 255, rgb[2] & 255);
}

static int heaviest_module(const void *a, const void *b)
{
  const struct module *x = a, *y = b;
  return x->self < y->self ? 1 : x->self > y->self ? -1 : strcmp(x->name, y->name);
}
static int by_name(const void *a, const void *b)
{
  return strcmp(((const struct module *)a)->name, ((const struct module *)b)->name);
}

/* Which colour is which module, and how much of the whole it is by itself. */
static int legend(const struct flame *f, int y)
{
  struct module *m = malloc((f->count + 1) * sizeof *m);
  uint32_t n = 0, kept = 0;
  double x = 10;
  if (!m) return ENOMEM;
  for (uint32_t i = 0; i < f->count; i++) {
    const struct box *b = &f->box[i + 1];
    if (b->self > 0 && *b->node->key.function->module) m[n++] = (struct module){b->node->key.function->module, b->self};
  }
  qsort(m, n, sizeof *m, by_name);
  for (uint32_t i = 0; i < n; i++)
    if (kept && !strcmp(m[kept - 1].name, m[i].name)) m[kept - 1].self += m[i].self;
    else m[kept++] = m[i];
  qsort(m, kept, sizeof *m, heaviest_module);
  for (uint32_t i = 0; i < kept && i < LEGEND; i++) {
    char fill[8];
    colour(m[i].name, "", fill);
    fprintf(f->to, "<rect x=\"%.0f\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%.0f\" y=\"%d\">", x, y,
            fill, x + 17, y + 10);
    put(f->to, m[i].name, 24);
    fprintf(f->to, " %s</text>\n", t_ratio(f->all > 0 ? m[i].self / f->all : 0));
    size_t letters = strlen(m[i].name);
    x += 17 + 6.7 * (double)((letters < 25 ? letters : 25) + 9);
    if (x > WIDTH - 200) break;
  }
  free(m);
  return 0;
}

/* ---- frames
 * ---------------------------------------------------------------------------------------------------------------------
 * */

/* What stands in a box with room for so many letters. Of a function without a name ("module+0x12") the place says more
 * than the module, which the colour tells. */
static const char *label_of(const struct export_function *of, unsigned letters)
{
  if (!of) return "all";
  size_t module = strlen(of->module);
  if (module == 0 || strlen(of->name) <= letters) return of->name;
  return !strncmp(of->name, of->module, module) && !strncmp(of->name + module, "+0x", 3) ? of->name + module : of->name;
}

static void put_box(const struct flame *f, const struct box *b, double x, double w, uint32_t depth)
{
  const struct export_function *of = b->node ? b->node->key.function : NULL;
  const char *name = of ? of->name : "all";
  char fill[8] = "#e0e0e0";
  unsigned letters = w > 6 ? (unsigned)((w - 6) / 6.7) : 0;
  int y = f->top + (int)depth * ROW;
  if (of) colour(of->module, of->name, fill);
  fputs("<g><title>", f->to);
  put(f->to, name, 600);
  if (of && (*of->module || *of->file)) {
    fputc('\n', f->to);
    put(f->to, of->module, 200);
    if (*of->file) fputs(*of->module ? "  " : "", f->to), put(f->to, of->file, 300);
  }
  fputc('\n', f->to);
  numbers(f, b);
  fprintf(f->to,
          "</title><rect x=\"%.4f\" y=\"%d\" width=\"%.4f\" height=\"%d\" fill=\"%s\"/><text x=\"%.1f\" y=\"%d\">", x,
          y, w, ROW - 1, fill, x + 3, y + 12);
  if (letters >= 3) put(f->to, label_of(of, letters), letters - 1);
  fputs("</text></g>\n", f->to);
}

/* Recursive, to DEEPEST at most. Gives the rows below and with it. */
static uint32_t put_tree(struct flame *f, const struct box *b, double x, double w, uint32_t depth)
{
  uint32_t rows = 1;
  double at = x;
  put_box(f, b, x, w, depth);
  for (uint32_t i = b->first; i < b->first + b->count; i++) {
    const struct box *c = f->order[i];
    double wide = f->all > 0 ? c->sum / f->all * WIDTH : 0;
    if (wide < THINNEST * WIDTH || depth >= DEEPEST) {
      f->left_out += b->first + b->count - i;
      break;
    }
    uint32_t below = put_tree(f, c, at, wide, depth + 1);
    if (below + 1 > rows) rows = below + 1;
    at += wide;
  }
  return rows;
}

/* ---- the file
 * ---------------------------------------------------------------------------------------------------------------------
 * */

static void line_of(const struct flame *f, int *y, const char *class, const char *text)
{
  fprintf(f->to, "<text class=\"%s\" x=\"10\" y=\"%d\">", class, *y);
  put(f->to, text, 200);
  fputs("</text>\n", f->to);
  *y += ROW;
}

static void heading(struct flame *f)
{
  const struct m6_snapshot *s = f->x->of->snap;
  char line[256], name[128];
  int y = 24;
  snprintf(name, sizeof name, "%.*s", s->name_bytes < 100 ? (int)s->name_bytes : 100, m6_snap_text(s) + s->name_offset);
  if (!m6_utf8_valid(name, strlen(name))) strcpy(name, "program"); /* cut within a character */
  snprintf(line, sizeof line, "%s (%u): %s", name, s->pid, f->x->measure->what);
  line_of(f, &y, "title", line);
  if (f->x->measure->source == EXPORT_SITES) {
    if (f->x->measure->mapped)
      snprintf(line, sizeof line, "Every call is known, but %s.", t_count(s->sites.maps_dropped));
    else if (s->sites.interval == 1) snprintf(line, sizeof line, "Every allocation was recorded.");
    else
      snprintf(line, sizeof line,
               "Estimates, from samples: one in %s. \xc2\xb1 is 95 %%. The books say %s in %s allocations, exactly.",
               t_bytes(s->sites.interval), t_bytes((double)s->sites.exact_bytes), t_count(s->sites.exact_count));
    line_of(f, &y, "note", line);
  }
  if (f->x->ns_each) {
    snprintf(line, sizeof line, "One sample in %s of CPU time of each thread.",
             t_time(&f->page, (double)f->x->ns_each / 1e9));
    line_of(f, &y, "note", line);
  }
  if (*f->x->why) line_of(f, &y, "warning", f->x->why);
  fprintf(f->to,
          "<text id=\"details\" class=\"note\" x=\"10\" y=\"%d\">Click on a frame to look into it, on the grey one to "
          "go back.</text>\n",
          y);
  fprintf(f->to,
          "<text id=\"reset\" class=\"button\" x=\"840\" y=\"24\" style=\"display:none\">back to all</text>\n"
          "<foreignObject id=\"search\" x=\"940\" y=\"8\" width=\"250\" height=\"24\" style=\"display:none\">"
          "<input xmlns=\"http://www.w3.org/1999/xhtml\" id=\"find\" type=\"search\" placeholder=\"search (press /)\" "
          "style=\"width:240px;box-sizing:border-box\"/></foreignObject>\n"
          "<text id=\"found\" class=\"note\" x=\"1190\" y=\"46\" text-anchor=\"end\"/>\n");
  f->top = y + 10;
}

static int draw(struct flame *f, FILE *whole)
{
  char *body = NULL;
  size_t n = 0;
  FILE *to = open_memstream(&body, &n);
  if (!to) return ENOMEM;
  f->to = to;
  heading(f);
  fputs("<g id=\"frames\">\n", to);
  uint32_t rows = put_tree(f, &f->box[0], 0, WIDTH, 0);
  fputs("</g>\n", to);
  int y = f->top + (int)rows * ROW + 12, error = legend(f, y);
  if (f->left_out)
    fprintf(to,
            "<text class=\"note\" x=\"10\" y=\"%d\">Too thin or too deep to be drawn: %s frames, and what is below "
            "them.</text>\n",
            y + 30, t_count(f->left_out));
  if (f->all <= 0)
    fprintf(to, "<text class=\"note\" x=\"10\" y=\"%d\">There is nothing of this kind in the recording.</text>\n",
            y + 30);
  if (fclose(to) && !error) error = ENOMEM;
  if (!error) {
    fprintf(whole,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- mach6 " MACH6_VERSION
            ": a flame graph; open it in a browser -->\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" viewBox=\"0 0 %.0f %d\">\n"
            "<style>text{font:11px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#000}svg{background:#fff}"
            "#frames text{pointer-events:none}#frames rect{stroke:#fff;stroke-width:.5}#frames g:hover "
            "rect{stroke:#000}#frames g{cursor:pointer}"
            ".title{font-size:15px;font-weight:bold}.note{fill:#444}.warning{fill:#b00000;font-weight:bold}"
            ".button{fill:#0645ad;cursor:pointer}</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, y + 44, WIDTH, y + 44);
    fwrite(body, 1, n, whole);
    fputs("<script><![CDATA[\n", whole);
    fwrite(flame_script, 1, flame_script_bytes, whole);
    fputs("]]></script>\n</svg>\n", whole);
  }
  free(body);
  return error;
}

int export_flame(const struct export_stacks *x, FILE *to)
{
  uint32_t n = HASH_COUNT(x->nodes);
  struct box *box = calloc(n + 1, sizeof *box), **order = malloc((n + 1) * sizeof(struct box *));
  struct flame f = {.x = x, .page = {.utf8 = 1}, .box = box, .order = order, .count = n};
  int error = ENOMEM;
  if (box && order) {
    plant(&f);
    error = draw(&f, to);
  }
  free(box);
  free(order);
  return error;
}
