# shellcheck shell=bash disable=SC2154
# sites.sh - which code of a real game allocates: sampled at level lite, unwound and named. Sourced after doom.sh or real.sh.
[[ $(uname -m) == x86_64 ]] || skip_all "stacks are unwound on x86-64 only"
TOP_SITES=10

# sites_of_game SECONDS PRESENTS COMMAND... - plays under `mach6 run --level lite --sites`; ends it by SIGTERM (SECONDS 0: never) when it
# has played so long and presented so often. What must hold for every game; $J is the report.
sites_of_game() {
  local seconds=$1 presents=$2 unwound whole stackless share
  shift 2
  _end_after "$seconds" "$presents" _presents_of_run "$TMP/mach6" \
    "$MACH6" run --level lite --sites --json "$J" -- "$@"
  is "$rc" 0 "exit status 0"
  check "there is a report" test -s "$J" || { diag "$(tail -n 20 "$TMP/mach6.err")"; done_testing; }
  read -r unwound whole stackless < <(json "$J" '.sites | "\(.stacks.unwound) \(.stacks.whole) \(.losses.stackless)"')
  diag "$(json "$J" '.sites | "\(.samples) samples of \(.exact_count) allocations, lost: \(.losses)"')"
  # Of all samples that were recorded: one that came without its stack did not reach it either.
  share=$(awk -v n="$((unwound + stackless))" -v w="$whole" 'BEGIN { if (n + 0 > 0) printf "%.2f", 100 * w / n; else print "none" }')
  within "$unwound" 200 1000000000 "enough stacks to tell"
  within "$share" 95 100 "$share % of $((unwound + stackless)) sampled stacks reach main or a thread's start ($stackless came without)"
  # Samples whose stack found no room (the collector came late) are a row without one. Whoever asked for memory: what wraps the allocator (operator new, a string's growth) is passed over.
  json "$J" '[.sites.rows | map(select(.stack | length > 0)) | sort_by(-.made.bytes)[0:'$TOP_SITES'][] | (.made.bytes | round) as $bytes |
    ([.stack[] | select(.function // "" | test("^(operator new|malloc|calloc|realloc|std::|__gnu_cxx::|void std::)|^strdup") | not)][0] // {}) |
    "\($bytes) \(.function) [\(.module)] \(.source // "")"][]' >"$TMP/top"
  diag "$(cat "$TMP/top")"
  is "$(wc -l <"$TMP/top")" "$TOP_SITES" "the $TOP_SITES largest sites are there"
  is "$(grep -cE ' (null|\[unknown\]|) \[|\[(null|\[unknown\]|)\]' "$TMP/top")" 0 "each of them has a function and a library"
  is "$(json "$J" '[.sites.rows | map(select(.stack | length > 0)) | sort_by(-.made.bytes)[0:'$TOP_SITES'][] | select(.stack | length < 3)] | length')" 0 \
    "and callers"
}
