/* sample.h - the sample game's parts: options, the job queue, the world, the picture.
 *
 * A school of fish and a few hunters in a pond: small, honest game work. The world knows no SDL, the picture changes
 * nothing in the world, the job queue knows neither. Everything that the world does is decided by the seed and the
 * number of frames: jobs are cut by index, read the last frame's state and write their own part, so the number of
 * threads changes nothing but the time.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* ---- options (main.c) ------------------------------------------------------------------------------------------- */
struct planted { /* a cause of late frames: how much of it, in each `every`th frame; 0 = none */
  unsigned amount, every;
};
struct options {
  uint64_t frames; /* 0 = until told to stop */
  double seconds;  /* 0 = until told to stop */
  uint64_t seed;
  unsigned threads; /* workers beside the main thread; 0 = jobs run on the main thread */
  unsigned fish;
  unsigned fps; /* 0 = as fast as it goes */
  unsigned width, height;
  size_t leak;    /* bytes lost a frame */
  unsigned storm; /* malloc/free pairs more a frame */
  unsigned stall_ms, stall_every;
  struct planted lock, neighbour, cold, calls; /* ms, ms, MiB, calls */
  int headless;
  const char *times; /* file for each frame's time, in ns; NULL = none */
};

/* ---- the job queue (jobs.c) ------------------------------------------------------------------------------------- */
struct jobs;
typedef void job_fn(void *context, unsigned part);

/* Starts the workers; NULL when there is no memory or no thread. */
struct jobs *jobs_start(unsigned threads);
/* Runs fn(context, 0 .. parts - 1), each once, on the workers and the caller; returns when all are done. `label` names
 * each part's scope and must live as long as the program. From the main thread only. */
void jobs_run(struct jobs *j, const char *label, job_fn *fn, void *context, unsigned parts);
void jobs_stop(struct jobs *j);

/* ---- the world (world.c) ---------------------------------------------------------------------------------------- */
struct fish {
  float x, y, vx, vy;
};
struct bubble { /* one block each, as small games do it */
  struct bubble *next;
  float x, y, vx, vy;
  uint16_t age, life;
  uint8_t hue;
};
#define HUNTERS 5
struct world {
  unsigned width, height, count;
  uint64_t seed, frame;
  uint64_t random;
  struct fish *fish, *fish_next; /* the last frame's, and the one in the making */
  struct fish hunter[HUNTERS];
  unsigned columns, rows;
  unsigned *cell_start; /* columns * rows + 1 */
  unsigned *cell_fish;  /* indices of fish, cell by cell */
  struct bubble *bubbles;
  unsigned bubble_count;
  uint64_t bubbles_ever, caught;
};

/* 0, or -1 when there is no memory. */
int world_make(struct world *w, const struct options *o);
void world_step(struct world *w, struct jobs *j, const struct options *o);
uint64_t world_checksum(const struct world *w);
void world_free(struct world *w);

/* ---- planted causes (causes.c): 0, or -1 ------------------------------------------------------------------------ */
int causes_fork(const struct options *o);  /* before there is any thread */
int causes_start(const struct options *o); /* the reason is on stderr when a file cannot be made cold */
void causes_frame(const struct options *o, uint64_t frame);
void causes_after(const struct options *o, uint64_t frame); /* the present: puts things back */
void causes_stop(void);

/* ---- the picture (picture.c) ------------------------------------------------------------------------------------ */
struct picture;
/* NULL, with the reason on stderr. */
struct picture *picture_open(const struct options *o);
/* Draws; does not present. */
void picture_draw(struct picture *p, const struct world *w, double frame_ms);
void picture_present(struct picture *p);
void picture_close(struct picture *p);

#endif
