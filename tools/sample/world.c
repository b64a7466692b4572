/* world.c - the simulation: a school that flocks (Reynolds 1987: separation, alignment, cohesion) on a spatial grid,
 * hunters that chase it, bubbles.
 *
 * Promise: the same seed, size and number of frames give the same world, byte for byte, whatever the number of threads,
 * and the same allocations.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "preload/mach6.h"
#include "sample.h"

#define CELL 32.0f /* pixels; also how far a fish sees */
#define PART 64u   /* fish in one job */
#define BUBBLE_EVERY 8u
#define SPEED_MIN 1.2f
#define SPEED_MAX 3.4f
#define BITE 7.0f

/* xorshift64* (Vigna 2016). */
static uint64_t next_random(uint64_t *state)
{
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return x * 0x2545f4914f6cdd1dull;
}
static float random_between(uint64_t *state, float low, float high)
{
  return low + (high - low) * (float)(next_random(state) >> 40) / (float)(1 << 24);
}

static struct fish random_fish(struct world *w)
{
  float angle = random_between(&w->random, 0, 6.2831853f);
  return (struct fish){random_between(&w->random, 0, (float)w->width), random_between(&w->random, 0, (float)w->height),
                       2 * cosf(angle), 2 * sinf(angle)};
}

int world_make(struct world *w, const struct options *o)
{
  *w = (struct world){.width = o->width, .height = o->height, .count = o->fish, .seed = o->seed};
  w->random = o->seed * 0x9e3779b97f4a7c15ull | 1;
  w->columns = (unsigned)ceilf((float)w->width / CELL);
  w->rows = (unsigned)ceilf((float)w->height / CELL);
  w->fish = calloc(w->count, sizeof *w->fish);
  w->fish_next = calloc(w->count, sizeof *w->fish_next);
  w->cell_start = calloc((size_t)w->columns * w->rows + 1, sizeof *w->cell_start);
  w->cell_fish = calloc(w->count, sizeof *w->cell_fish);
  if (!w->fish || !w->fish_next || !w->cell_start || !w->cell_fish) {
    world_free(w);
    return -1;
  }
  for (unsigned i = 0; i < w->count; i++) w->fish[i] = random_fish(w);
  for (unsigned i = 0; i < HUNTERS; i++) w->hunter[i] = random_fish(w);
  return 0;
}

static unsigned clamp_cell(float at, unsigned cells)
{
  int c = (int)(at / CELL);
  return c < 0 ? 0 : c >= (int)cells ? cells - 1 : (unsigned)c;
}
static unsigned cell_of(const struct world *w, const struct fish *f)
{
  return clamp_cell(f->y, w->rows) * w->columns + clamp_cell(f->x, w->columns);
}

/* Sorts the fish into cells by counting. */
static void build_grid(struct world *w)
{
  unsigned cells = w->columns * w->rows;
  unsigned *fill = calloc(cells, sizeof *fill);
  if (!fill) abort();
  memset(w->cell_start, 0, (cells + 1) * sizeof *w->cell_start);
  for (unsigned i = 0; i < w->count; i++) w->cell_start[cell_of(w, &w->fish[i]) + 1]++;
  for (unsigned c = 0; c < cells; c++) w->cell_start[c + 1] += w->cell_start[c];
  for (unsigned i = 0; i < w->count; i++) {
    unsigned c = cell_of(w, &w->fish[i]);
    w->cell_fish[w->cell_start[c] + fill[c]++] = i;
  }
  free(fill);
}

/* The fish that `self` sees, into a list that grows as needed; gives how many. */
struct neighbours {
  unsigned *list, room;
};
static unsigned look_around(const struct world *w, unsigned self, struct neighbours *n)
{
  const struct fish *f = &w->fish[self];
  unsigned cx = clamp_cell(f->x, w->columns), cy = clamp_cell(f->y, w->rows), found = 0;
  for (unsigned y = cy ? cy - 1 : 0; y <= cy + 1 && y < w->rows; y++)
    for (unsigned x = cx ? cx - 1 : 0; x <= cx + 1 && x < w->columns; x++) {
      unsigned c = y * w->columns + x;
      for (unsigned k = w->cell_start[c]; k < w->cell_start[c + 1]; k++) {
        unsigned other = w->cell_fish[k];
        float dx = w->fish[other].x - f->x, dy = w->fish[other].y - f->y;
        if (other == self || dx * dx + dy * dy > CELL * CELL) continue;
        if (found == n->room) {
          n->room *= 2;
          n->list = realloc(n->list, n->room * sizeof *n->list);
          if (!n->list) abort();
        }
        n->list[found++] = other;
      }
    }
  return found;
}

static void steer(const struct world *w, unsigned self, const unsigned *list, unsigned n, float *ax, float *ay)
{
  const struct fish *f = &w->fish[self];
  float mx = 0, my = 0, vx = 0, vy = 0;
  *ax = *ay = 0;
  for (unsigned k = 0; k < n; k++) {
    const struct fish *o = &w->fish[list[k]];
    float dx = f->x - o->x, dy = f->y - o->y, d2 = dx * dx + dy * dy + 0.01f;
    mx += o->x;
    my += o->y;
    vx += o->vx;
    vy += o->vy;
    if (d2 < 100) {
      *ax += 1.6f * dx / d2;
      *ay += 1.6f * dy / d2;
    }
  }
  if (n) {
    float s = 1.0f / (float)n;
    *ax += 0.0025f * (mx * s - f->x) + 0.06f * (vx * s - f->vx);
    *ay += 0.0025f * (my * s - f->y) + 0.06f * (vy * s - f->vy);
  }
  for (unsigned h = 0; h < HUNTERS; h++) {
    float dx = f->x - w->hunter[h].x, dy = f->y - w->hunter[h].y, d2 = dx * dx + dy * dy + 1;
    if (d2 < 8100) {
      *ax += 14 * dx / d2;
      *ay += 14 * dy / d2;
    }
  }
  float wall = 60;
  if (f->x < wall) *ax += 0.12f;
  if (f->x > (float)w->width - wall) *ax -= 0.12f;
  if (f->y < wall) *ay += 0.12f;
  if (f->y > (float)w->height - wall) *ay -= 0.12f;
}

static void move(const struct world *w, const struct fish *f, float ax, float ay, float fastest, struct fish *to)
{
  float vx = f->vx + ax, vy = f->vy + ay, speed = sqrtf(vx * vx + vy * vy) + 1e-6f;
  float want = speed > fastest ? fastest : speed < SPEED_MIN ? SPEED_MIN : speed;
  to->vx = vx * want / speed;
  to->vy = vy * want / speed;
  to->x = fminf(fmaxf(f->x + to->vx, 0), (float)w->width - 1);
  to->y = fminf(fmaxf(f->y + to->vy, 0), (float)w->height - 1);
}

/* One part of the school: reads w->fish, writes its own part of w->fish_next. */
static void flock(void *context, unsigned part)
{
  struct world *w = context;
  struct neighbours n = {malloc(8 * sizeof *n.list), 8};
  if (!n.list) abort();
  unsigned end = (part + 1) * PART < w->count ? (part + 1) * PART : w->count;
  for (unsigned i = part * PART; i < end; i++) {
    float ax, ay;
    unsigned seen = look_around(w, i, &n);
    steer(w, i, n.list, seen, &ax, &ay);
    move(w, &w->fish[i], ax, ay, SPEED_MAX, &w->fish_next[i]);
  }
  free(n.list);
}

static void move_hunters(struct world *w)
{
  for (unsigned h = 0; h < HUNTERS; h++) {
    struct fish *me = &w->hunter[h];
    float best = 1e9f, ax = 0, ay = 0;
    for (unsigned i = h; i < w->count; i += HUNTERS) {
      float dx = w->fish[i].x - me->x, dy = w->fish[i].y - me->y, d2 = dx * dx + dy * dy;
      if (d2 < best) {
        best = d2;
        ax = dx;
        ay = dy;
      }
    }
    float d = sqrtf(best) + 1;
    move(w, me, 0.18f * ax / d, 0.18f * ay / d, SPEED_MAX * 1.15f, me);
  }
}

static void blow(struct world *w, const struct fish *at, float spread, uint8_t hue)
{
  struct bubble *b = malloc(sizeof *b);
  if (!b) abort();
  float angle = random_between(&w->random, 0, 6.2831853f), speed = random_between(&w->random, 0, spread);
  *b = (struct bubble){w->bubbles, at->x, at->y, speed * cosf(angle), speed * sinf(angle), 0, 0, hue};
  b->life = (uint16_t)(24 + next_random(&w->random) % 40);
  w->bubbles = b;
  w->bubble_count++;
  w->bubbles_ever++;
}

/* Hunters eat what they touch; what is eaten comes back somewhere else. */
static void collide(struct world *w)
{
  for (unsigned h = 0; h < HUNTERS; h++)
    for (unsigned i = 0; i < w->count; i++) {
      float dx = w->fish[i].x - w->hunter[h].x, dy = w->fish[i].y - w->hunter[h].y;
      if (dx * dx + dy * dy > BITE * BITE) continue;
      for (unsigned k = 0; k < 60; k++) blow(w, &w->fish[i], 3.2f, 1);
      w->fish[i] = random_fish(w);
      w->caught++;
    }
}

static void step_bubbles(struct world *w, size_t leak)
{
  for (unsigned i = (unsigned)(w->frame % BUBBLE_EVERY); i < w->count; i += BUBBLE_EVERY) blow(w, &w->fish[i], 0.4f, 0);
  for (struct bubble **at = &w->bubbles; *at;) {
    struct bubble *b = *at;
    b->x += b->vx;
    b->y += b->vy;
    b->vy -= 0.012f;
    if (++b->age < b->life) {
      at = &b->next;
      continue;
    }
    *at = b->next;
    free(b);
    w->bubble_count--;
  }
  if (leak) { /* the planted fault: a block that is written to and forgotten */
    char *volatile lost = malloc(leak);
    if (lost) memset(lost, 0x6c, leak);
  }
} /* NOLINT(clang-analyzer-unix.Malloc): yes, it leaks */

void world_step(struct world *w, struct jobs *j, const struct options *o)
{
  mach6_mark("simulate");

  mach6_mark("grid");
  build_grid(w);
  mach6_done();

  mach6_mark("physics");
  jobs_run(j, "flock", flock, w, (w->count + PART - 1) / PART);
  struct fish *made = w->fish_next;
  w->fish_next = w->fish;
  w->fish = made;
  move_hunters(w);
  mach6_done();

  mach6_mark("collide");
  collide(w);
  mach6_done();

  mach6_mark("particles");
  step_bubbles(w, o->leak);
  mach6_done();

  w->frame++;
  mach6_done();
}

/* FNV-1a over all that moves. */
static void mix(uint64_t *h, const void *data, size_t n)
{
  const unsigned char *p = data;
  for (size_t i = 0; i < n; i++) *h = (*h ^ p[i]) * 0x100000001b3ull;
}
uint64_t world_checksum(const struct world *w)
{
  uint64_t h = 0xcbf29ce484222325ull;
  mix(&h, w->fish, w->count * sizeof *w->fish);
  mix(&h, w->hunter, sizeof w->hunter);
  for (const struct bubble *b = w->bubbles; b; b = b->next) mix(&h, &b->x, 4 * sizeof b->x);
  uint64_t numbers[] = {w->frame, w->bubbles_ever, w->caught, w->random};
  mix(&h, numbers, sizeof numbers);
  return h;
}

void world_free(struct world *w)
{
  while (w->bubbles) {
    struct bubble *b = w->bubbles;
    w->bubbles = b->next;
    free(b);
  }
  free(w->fish);
  free(w->fish_next);
  free(w->cell_start);
  free(w->cell_fish);
}
