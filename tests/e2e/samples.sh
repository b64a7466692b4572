# shellcheck shell=bash disable=SC2034,SC2154
# samples.sh - what the tests of CPU samples share: run a program, sample it, compare with what it measured itself.
D=$P/sampledump
H=$P/hotsplit
T=$TMP/table

# sample NAME [sampledump's words] -- PROGRAM ARGS...: runs the program, samples it until there are 100 samples, ends it.
# Then: $T what sampledump said, $TMP/folded, $TMP/join; $hot_ns $warm_ns what the program measured; $target its pid.
sample() {
  local words=() name=$1
  shift
  while [[ $1 != -- ]]; do words+=("$1"); shift; done
  shift
  start "$@"
  target=$pid
  wait_for 10 grep -q ready "$started_out" || { not_ok "$name: the program starts" "$(cat "$started_err")"; return 1; }
  sampled=0
  "$D" --tsv --rows 1000 --modules --folded "$TMP/folded" --join "$TMP/join" --samples 100 "${words[@]}" "$target" 30 >"$T" 2>"$TMP/err" ||
    sampled=$?
  kill -TERM "$target" 2>/dev/null
  finish "$target"
  hot_ns=0 warm_ns=0
  read -r _ hot_ns _ warm_ns _ < <(grep ^hot "$started_out")
  [[ $sampled == 0 ]] || not_ok "$name: sampling works" "$(cat "$T" "$TMP/err")"
}
key() { sed -n "s/^# $1 //p" "$T"; }
self_of() { awk -F'\t' -v f="$1" '$3 == f { n += $1 } END { print n + 0 }' "$T"; }
total_of() { awk -F'\t' -v f="$1" '$3 == f { n += $2 } END { print n + 0 }' "$T"; }
column() { awk -F'\t' -v f="$1" -v c="$2" '$3 == f { print $c; exit }' "$T"; }
# share NAME HOT WARM: the hot function's part of both is binomial about what the program measured; four standard deviations.
share() {
  local said
  if said=$(awk -v h="$(total_of "$2")" -v w="$(total_of "$3")" -v a="$hot_ns" -v b="$warm_ns" 'BEGIN {
      n = h + w; p = a / (a + b + 1); d = h - n * p; d = d < 0 ? -d : d; limit = 4 * sqrt(n * p * (1 - p)) + 1
      printf "%d and %d samples; measured %.3f; off by %.1f of at most %.1f\n", h, w, p, d, limit
      exit !(n >= 30 && d <= limit) }'); then ok "$1: shares are what the program measured"; else
    not_ok "$1: shares are what the program measured" "$said" "$(head -n 40 "$T")"
  fi
}
