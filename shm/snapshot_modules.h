/* snapshot_modules.h - the files whose code the session's stacks lead through, as part of a snapshot (snapshot.h): so
 * that what has no name in it ("game+0x1234", an offset in that file) can be named later, by a debug file of the same
 * build-id. Final snapshots, and those for a dump, only.
 */
#ifndef M6_SNAPSHOT_MODULES_H
#define M6_SNAPSHOT_MODULES_H

#include <stdint.h>

#define M6_MODULES_SHOWN 512u
struct m6_snap_module {
  uint32_t path_offset, path_bytes;         /* as the target saw it; its last part is what stacks call the module */
  uint32_t build_id_offset, build_id_bytes; /* lower-case hex; 0 bytes: it has none */
  uint64_t start, end, offset; /* its first executable mapping: addresses, and where in the file it begins */
};
struct m6_snap_modules {
  uint32_t count, more; /* more: for which there was no room */
  uint64_t offset;      /* of the rows */
};

_Static_assert(sizeof(struct m6_snap_module) == 40, "size must not change within a version");

#endif
