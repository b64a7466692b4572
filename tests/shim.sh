# shellcheck shell=bash disable=SC2034,SC2154
# shim.sh - for tests of the shim alone, without a collector: run a program with a session from its first moment, read its
# segment afterwards, compare with an independent count. Sourced after lib.sh.

TOKEN=$(printf '%x%04x' "$$" $((RANDOM + 1)))
segments_of_token() { "$P/segread" --find "$TOKEN" "$@"; } # [NAME]
_remove_segments() {
  local s
  for s in $(segments_of_token); do rm -f "$s"; done
}
at_exit _remove_segments

# collecting COMMAND... - with the shim, in a session of its own; PRELOAD_AFTER: preloads behind the shim, PRELOAD_BEFORE in
# front. Leaves $rc, $TMP/out, $TMP/err and, for the program's name, $SEG (empty when there is none).
collecting() {
  local name
  name=$(basename "$1")
  _remove_segments
  rc=0
  env ${SHIM_ENV:-} MACH6_RUN="$TOKEN" LD_PRELOAD="${PRELOAD_BEFORE:+$PRELOAD_BEFORE:}$SHIM${PRELOAD_AFTER:+:$PRELOAD_AFTER}" "$@" \
    >"$TMP/out" 2>"$TMP/err" </dev/null || rc=$?
  SEG=$(segments_of_token "${name:0:63}" | head -n 1)
}
# seg KEY - a value of the last run's segment; nothing when there is no segment.
seg() { [[ -z $SEG ]] || "$P/segread" "$SEG" | sed -n "s/^$1 //p"; }
seg_records() { "$P/segread" "$SEG" records | grep '^record '; }
out() { sed -n "s/^$1 //p" "$TMP/out"; } # KEY - what the program itself said, `key value`

# same_counts NAME COMMAND... - oracle A: what the shim counted is what libcount, behind it, counted; to the call and to the byte.
same_counts() {
  local name=$1 want got key i=0
  shift
  rm -f "$TMP/counts"
  COUNT_FILE=$TMP/counts PRELOAD_AFTER=$P/libcount.so collecting "$@"
  if [[ -z $SEG || ! -s $TMP/counts ]]; then
    not_ok "$name: the count is libcount's" "segment: ${SEG:-none}" "$(tail -n 5 "$TMP/err")"
    return
  fi
  want=$(od -A n -t d8 -v -w8 -N 56 "$TMP/counts" | tr -d ' ' |
    for key in allocs bytes frees calloc realloc aligned live; do read -r i && echo "$key $i"; done)
  got=$("$P/segread" "$SEG" | grep -E '^(allocs|bytes|frees|calloc|realloc|aligned|live) ' |
    sort -k1,1 | { declare -A v; while read -r key i; do v[$key]=$i; done
      for key in allocs bytes frees calloc realloc aligned live; do echo "$key ${v[$key]}"; done; })
  is "$got" "$want" "$name: the count is libcount's"
}
