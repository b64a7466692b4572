# shellcheck shell=bash disable=SC2154
# fuzz.sh - what the fuzz tests share: fuzz NAME SEEDS-FOLDER [LIBFUZZER-OPTIONS...] runs build/tests/fuzz/fuzz_NAME for
# MACH6_FUZZ_S seconds (10). New inputs go to MACH6_FUZZ_CORPUS/NAME when that is set (make fuzz), else they are dropped.
fuzz() {
  local name=$1 seeds=$2 corpus=${MACH6_FUZZ_CORPUS:+$MACH6_FUZZ_CORPUS/$1} program=$B/tests/fuzz/fuzz_$1
  shift 2
  [[ -x $program ]] || skip_all "this clang has no fuzzer (tools/setup test)"
  corpus=${corpus:-$TMP/corpus}
  mkdir -p "$corpus" "$TMP/found"
  run "$program" -max_total_time="${MACH6_FUZZ_S:-10}" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=512 -print_final_stats=1 \
    -artifact_prefix="$TMP/found/" "$@" "$corpus" "$seeds"
  is "$rc" 0 "fuzz_$name finds nothing in ${MACH6_FUZZ_S:-10} s" || {
    tail -n 60 "$TMP/err" | diag "$(tail -n 60 "$TMP/err")"
    for f in "$TMP"/found/*; do [[ -e $f ]] && diag "input (base64): $(base64 -w 0 "$f" | head -c 4000)"; done
  }
  # It must have run: a fuzzer that ends at once finds nothing either.
  within "$(sed -n 's/^stat::number_of_executed_units: *//p' "$TMP/err")" 50 1e12 "fuzz_$name has run its inputs"
  diag "$(grep -a 'stat::number_of_executed_units\|DONE' "$TMP/err")"
}
