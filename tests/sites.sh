# shellcheck shell=bash disable=SC2154
# sites.sh - for tests of sampled allocations: a run with sites, and what its report says of a function, beside the program's own truth.
# Sourced after lib.sh.
command -v jq >/dev/null || skip_all "jq is not installed (tools/setup test)"
[[ $(uname -m) == x86_64 ]] || skip_all "stacks are unwound on x86-64 only"
R=$TMP/report.json

sites_of() { # OPTION COMMAND... - a run; $R its report
  local option=$1
  shift
  rm -f "$R"
  run "$MACH6" run "$option" --json "$R" -- "$@"
}
# Sum over the rows whose innermost three functions hold NAME: bytes, half of the 95 % interval, samples, live samples, suspect
of() { # NAME
  jq -r --arg n "$1" '[.sites.rows[] | select([.stack[0:3][].function] | any(. == $n))] |
    [(map(.made.bytes) | add // 0), (map(pow((.made.high - .made.low) / 2; 2)) | add // 0 | sqrt), (map(.made.samples) | add // 0),
     (map(.live.samples) | add // 0), any(.suspect)] | @tsv' "$R"
}
truth_bytes() { sed -n "s/^truth $1 [0-9]* //p" "$TMP/out"; }
# The truth lies within twice the half-width (some four standard errors: one run in fifteen thousand fails by chance).
agrees() { # NAME
  local bytes half truth
  read -r bytes half _ < <(of "$1")
  truth=$(truth_bytes "$1")
  within "$truth" "$(awk "BEGIN { print $bytes - 2 * $half }")" "$(awk "BEGIN { print $bytes + 2 * $half }")" "$2$1: its bytes are known"
}
suspected() { of "$1" | cut -f 5; }
losses() { json "$R" '.sites.losses.dropped + .sites.losses.stackless'; }
# Samples that found no room (on a machine that is very busy) are said, and make the estimates fall short: then amounts prove nothing.
complete() { [[ $(losses) == 0 ]] || { skip "$1" "the machine was too busy: $(losses) samples were lost, and said so"; return 1; }; }

# stripped FOLDER FILE... - copies of test programs without symbols, their debug files beside them (FILE.debug).
stripped() {
  local folder=$1 f
  shift
  mkdir "$folder"
  for f; do
    cp "$P/$f" "$folder/$f"
    objcopy --only-keep-debug "$P/$f" "$folder/$f.debug"
    (cd "$folder" && strip "$f" && objcopy --add-gnu-debuglink="$f.debug" "$f")
  done
}
