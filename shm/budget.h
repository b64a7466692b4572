/* budget.h - the budgets: what bounds the memory, the time and the counts that both sides know, by name, once.
 */
#ifndef M6_BUDGET_H
#define M6_BUDGET_H

#define M6_SESSION_TTL_S 300 /* seconds; default and maximum */
#define M6_RING_BYTES                                                                                                  \
  (4u << 20) /* all rings of one target together, sampled allocations, stacks and mappings included */
#define M6_SITE_BYTES (1u << 20)        /* of these: sampled allocations that live, and stacks on their way */
#define M6_SITE_TABLE 32768u            /* sampled allocations that live at one time and whose end will be known */
#define M6_SITE_INTERVAL (512u << 10)   /* mean bytes between two samples, unless told otherwise */
#define M6_SITE_STACK_BYTES (48u << 10) /* of a stack that a sample reaches at most */
#define M6_SITE_STACK_BYTES_EVERY (16u << 10) /* the same when every allocation is a sample */
#define M6_SITE_GRANULES_MAX 16u /* of 1 KiB that one stack may take, once what can be no address is left out */
#define M6_SITE_GRANULES_MAX_EVERY 3u
#define M6_SITES_MAX 2048     /* sites (stack and scope) told apart; the last one takes the rest */
#define M6_SITES_SHOWN 192    /* of these in a snapshot: those that lead in anything */
#define M6_SITE_MAPS_SHOWN 24 /* sites of mappings in a snapshot */
#define M6_SITE_FRAMES_MAX 96 /* callers of one site */
#define M6_SLOTS 1024         /* threads with counters of their own at one time, slot 0 included */
#define M6_RINGS 160          /* threads with a ring of their own at one time */
#define M6_STREAMS 48         /* present streams told apart; the last one takes the rest */
#define M6_LABELS 4096        /* entries of the label table; three quarters are used at most */
#define M6_LABELS_MAX (M6_LABELS / 4 * 3)
#define M6_LABEL_TEXT_BYTES (256u << 10)
#define M6_LABEL_BYTES_MAX 255 /* stored bytes of one label; its identity is a hash over all of it */

#define M6_FRAMES_RETAINED 32768 /* frame records kept by the collector; overwrites are counted */
#define M6_SPIKE_WINDOW 120      /* frames in the rolling median */
#define M6_SPIKE_WINDOW_MIN 10   /* frames before the first spike */
#define M6_SPIKES_RETAINED 32

#define M6_BUCKETS_RETAINED                                                                                            \
  300 /* one-second buckets of every metric; overwrites of these and the next two are counted */
#define M6_GROWTH_RETAINED 300 /* memory-growth events */
#define M6_STALLS_RETAINED 512 /* intervals over the spike threshold */

#define M6_DUMP_BYTES (50u << 20)            /* one dump; what does not fit is left out, and the dump says how much */
#define M6_DUMP_OBJECT_BYTES (1u << 20)      /* one object in it */
#define M6_DUMP_OBJECT_BYTES_MIN (64u << 10) /* it may be as small as this: every row fits, with its columns' names */

#define M6_RESERVOIR 128        /* samples of one node for percentiles */
#define M6_NODES_MAX 8192       /* nodes of one tree; what comes later goes to "(other)" */
#define M6_SCOPE_DEPTH_MAX 1024 /* open scopes of one thread that are told apart */

#define M6_KERNEL_RING_BYTES (4u << 20)  /* what the kernel writes for one session, all ring buffers together: */
#define M6_FRAMES_RING_BYTES (1u << 20)  /* boundaries, some 5,000 */
#define M6_SAMPLES_RING_BYTES (2u << 20) /* CPU samples; as much again for switches, where boundaries have no ring */
#define M6_SAMPLES_RETAINED 10000     /* CPU samples kept with their time, and different stacks kept, of one session */
#define M6_SAMPLES_STACK_MAX 127      /* frames of one stack; the kernel's own default */
#define M6_SAMPLES_STACK_BYTES 16384u /* of a thread's stack copied with a sample, where it is unwound afterwards */
#define M6_SAMPLES_HZ_LITE 49         /* a second of CPU time of one thread */
#define M6_SAMPLES_HZ_FULL 99
#define M6_SAMPLES_PERIOD_MIN_MS 10 /* of the sampler that needs no capability */
#define M6_SAMPLES_PERIOD_MAX_MS 1000

#define M6_PROBE_TTL_S 30 /* of `mach6 probe`, unless told otherwise */
#define M6_PROBE_TTL_MAX_S 300

#define M6_HEAP_INTERVAL_S 30 /* seconds at least between two measurements of the whole heap */
#define M6_HEAP_FIRST_S 5     /* of a session before its first one */
#define M6_CONTROL_CLIENTS 4  /* commands under way at a collector's control socket */

/* What mach6 itself may cost, in millionths of one core's time, or of the target's CPU time where that is more. */
#define M6_OVERHEAD_MEMORY_PPM 5000
#define M6_OVERHEAD_LITE_PPM 10000
#define M6_OVERHEAD_FULL_PPM 30000

#define M6_HEARTBEAT_MS 200       /* how often the collector shows that it lives */
#define M6_HEARTBEAT_LOST_MS 3000 /* silence after which the shim goes inert */

#endif
