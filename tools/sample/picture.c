/* picture.c - draws the pond with SDL's renderer: water, bubbles, fish as triangles, a strip of frame times.
 *
 * Promise: reads the world, never changes it. Headless it uses SDL's dummy video driver and its software renderer, so
 * the same pixels are made where there is no display.
 */
#include <SDL.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "preload/mach6.h"
#include "sample.h"

#define HISTORY 240
#define WATER_BANDS 24

struct picture {
  SDL_Window *window;
  SDL_Renderer *renderer;
  unsigned width, height;
  SDL_Vertex *vertices;
  unsigned vertex_room;
  float history[HISTORY];
  unsigned history_at;
};

static struct picture *give_up(struct picture *p, const char *what)
{
  fprintf(stderr, "mach6-sample: %s: %s\n", what, SDL_GetError());
  picture_close(p);
  return NULL;
}

struct picture *picture_open(const struct options *o)
{
  struct picture *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->width = o->width;
  p->height = o->height;
  if (o->headless) SDL_setenv("SDL_VIDEODRIVER", "dummy", 0);
  SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
  SDL_SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1");
  if (SDL_Init(SDL_INIT_VIDEO)) return give_up(p, "no video (without a display: --headless)");
  p->window = SDL_CreateWindow("mach6 sample: the pond", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, (int)o->width,
                               (int)o->height, 0);
  if (!p->window) return give_up(p, "no window");
  p->renderer = SDL_CreateRenderer(p->window, -1, o->headless ? SDL_RENDERER_SOFTWARE : 0);
  if (!p->renderer) return give_up(p, "no renderer");
  SDL_SetRenderDrawBlendMode(p->renderer, SDL_BLENDMODE_NONE);
  p->vertex_room = 3 * (o->fish + HUNTERS);
  p->vertices = calloc(p->vertex_room, sizeof *p->vertices);
  if (!p->vertices) return give_up(p, "no memory");
  return p;
}

static void draw_water(struct picture *p)
{
  for (unsigned i = 0; i < WATER_BANDS; i++) {
    unsigned top = p->height * i / WATER_BANDS, end = p->height * (i + 1) / WATER_BANDS;
    SDL_Rect band = {0, (int)top, (int)p->width, (int)(end - top)};
    SDL_SetRenderDrawColor(p->renderer, (Uint8)(14 - i / 2), (Uint8)(62 - 2 * i), (Uint8)(92 - 2 * i), 255);
    SDL_RenderFillRect(p->renderer, &band);
  }
}

static void draw_bubbles(struct picture *p, const struct world *w)
{
  /* Shades by age, so that one call draws one shade. */
  enum { SHADES = 4, KINDS = 2 };
  static const Uint8 tint[KINDS][3] = {{120, 190, 210}, {255, 150, 90}};
  SDL_Rect *rects = malloc((w->bubble_count ? w->bubble_count : 1) * sizeof *rects);
  if (!rects) return;
  for (unsigned kind = 0; kind < KINDS; kind++)
    for (unsigned shade = 0; shade < SHADES; shade++) {
      int n = 0;
      for (const struct bubble *b = w->bubbles; b; b = b->next)
        if (b->hue == kind && (unsigned)b->age * SHADES / b->life == shade) {
          int size = kind ? 3 : 2;
          rects[n++] = (SDL_Rect){(int)b->x, (int)b->y, size, size};
        }
      unsigned fade = 100 - 22 * shade;
      SDL_SetRenderDrawColor(p->renderer, (Uint8)(tint[kind][0] * fade / 100), (Uint8)(tint[kind][1] * fade / 100),
                             (Uint8)(tint[kind][2] * fade / 100), 255);
      if (n) SDL_RenderFillRects(p->renderer, rects, n);
    }
  free(rects);
}

static SDL_Vertex *put_fish(SDL_Vertex *v, const struct fish *f, float size, SDL_Color head, SDL_Color tail)
{
  float s = sqrtf(f->vx * f->vx + f->vy * f->vy) + 1e-6f, ux = f->vx / s, uy = f->vy / s;
  v[0] = (SDL_Vertex){{f->x + ux * size * 1.6f, f->y + uy * size * 1.6f}, head, {0, 0}};
  v[1] = (SDL_Vertex){{f->x - ux * size - uy * size * 0.7f, f->y - uy * size + ux * size * 0.7f}, tail, {0, 0}};
  v[2] = (SDL_Vertex){{f->x - ux * size + uy * size * 0.7f, f->y - uy * size - ux * size * 0.7f}, tail, {0, 0}};
  return v + 3;
}

static void draw_fish(struct picture *p, const struct world *w)
{
  SDL_Vertex *v = p->vertices;
  for (unsigned i = 0; i < w->count; i++) {
    SDL_Color head = {(Uint8)(190 + i % 60), 220, (Uint8)(120 + i % 7 * 18), 255}, tail = {30, 110, 130, 255};
    v = put_fish(v, &w->fish[i], 4, head, tail);
  }
  for (unsigned h = 0; h < HUNTERS; h++) {
    SDL_Color head = {255, 120, 80, 255}, tail = {120, 20, 40, 255};
    v = put_fish(v, &w->hunter[h], 11, head, tail);
  }
  SDL_RenderGeometry(p->renderer, NULL, p->vertices, (int)(v - p->vertices), NULL, 0);
}

/* The last frames, one column each; the line is 60 frames a second. */
static void draw_strip(struct picture *p, double frame_ms)
{
  p->history[p->history_at++ % HISTORY] = (float)frame_ms;
  float scale = 3;
  int base = (int)p->height - 8;
  SDL_SetRenderDrawColor(p->renderer, 60, 130, 120, 255);
  SDL_RenderDrawLine(p->renderer, 8, base - (int)(16.7f * scale), 8 + 2 * HISTORY, base - (int)(16.7f * scale));
  SDL_SetRenderDrawColor(p->renderer, 230, 230, 160, 255);
  SDL_Rect columns[HISTORY];
  for (unsigned i = 0; i < HISTORY; i++) {
    float ms = fminf(p->history[(p->history_at + i) % HISTORY], 40);
    int high = (int)(ms * scale);
    columns[i] = (SDL_Rect){8 + 2 * (int)i, base - high, 1, high};
  }
  SDL_RenderFillRects(p->renderer, columns, HISTORY);
}

void picture_draw(struct picture *p, const struct world *w, double frame_ms)
{
  mach6_mark("render");
  mach6_mark("water");
  draw_water(p);
  mach6_done();
  mach6_mark("bubbles");
  draw_bubbles(p, w);
  mach6_done();
  mach6_mark("school");
  draw_fish(p, w);
  mach6_done();
  mach6_mark("strip");
  draw_strip(p, frame_ms);
  mach6_done();
  mach6_done();
}

void picture_present(struct picture *p) { SDL_RenderPresent(p->renderer); }

void picture_close(struct picture *p)
{
  if (!p) return;
  if (p->renderer) SDL_DestroyRenderer(p->renderer);
  if (p->window) SDL_DestroyWindow(p->window);
  SDL_Quit();
  free(p->vertices);
  free(p);
}
