/* payload_encode.c - a JSON value as bytes: JSON text (jansson) or msgpack (msgpack-c), from the one tree.
 *
 * Promise: both forms carry the same structure; integers stay integers of 64 bits, a JSON null is a msgpack nil. What has no
 * JSON number (NaN, infinity) never gets here: m6_json_real makes null of it.
 */
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "stats_internal.h"

json_t *m6_json_real(double v) { return isfinite(v) ? json_real(v) : json_null(); }
json_t *m6_json_u64(uint64_t v) { return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v); }

/* Depth is bounded by M6_PAYLOAD_DEPTH_MAX, so the recursion is. */
static int pack(msgpack_packer *to, json_t *v)
{
  switch (json_typeof(v)) {
  case JSON_NULL: return msgpack_pack_nil(to);
  case JSON_TRUE: return msgpack_pack_true(to);
  case JSON_FALSE: return msgpack_pack_false(to);
  case JSON_INTEGER: return msgpack_pack_int64(to, json_integer_value(v));
  case JSON_REAL: return msgpack_pack_double(to, json_real_value(v));
  case JSON_STRING: return msgpack_pack_str_with_body(to, json_string_value(v), json_string_length(v));
  case JSON_ARRAY: {
    size_t i;
    json_t *item;
    int error = msgpack_pack_array(to, json_array_size(v));
    json_array_foreach(v, i, item) error |= pack(to, item);
    return error;
  }
  case JSON_OBJECT: {
    const char *key;
    json_t *item;
    int error = msgpack_pack_map(to, json_object_size(v));
    json_object_foreach(v, key, item)
    {
      error |= msgpack_pack_str_with_body(to, key, strlen(key));
      error |= pack(to, item);
    }
    return error;
  }
  }
  return -1;
}

static int encode_msgpack(json_t *value, char **out, size_t *bytes)
{
  msgpack_sbuffer buffer;
  msgpack_packer packer;
  msgpack_sbuffer_init(&buffer);
  msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
  if (pack(&packer, value)) {
    msgpack_sbuffer_destroy(&buffer);
    return MACH6_ENOMEM;
  }
  *bytes = buffer.size;
  *out = msgpack_sbuffer_release(&buffer);
  return MACH6_OK;
}

int m6_payload_encode(json_t *value, enum mach6_format format, char **out, size_t *bytes)
{
  *out = NULL;
  *bytes = 0;
  if (!value) return MACH6_ENOMEM;
  int error = MACH6_OK;
  if (format == MACH6_MSGPACK) {
    error = encode_msgpack(value, out, bytes);
  } else {
    *out = json_dumps(value, JSON_COMPACT);
    if (*out) *bytes = strlen(*out);
    else error = MACH6_ENOMEM;
  }
  json_decref(value);
  return error;
}
