# shellcheck shell=bash disable=SC2034
# lib.sh - what the shell tests share: TAP, a folder of one's own, processes that are ended by pid, a display, a game's
# home.
#
# A test is an executable bash script that sources this file and ends with `done_testing`:
#
#   #!/bin/bash
#   # timeout: 120            (seconds; without the line tests/run has a default)
#   . "$(dirname "$0")/../lib.sh"
#   run "$P/churn" 10000
#   is "$rc" 0 "churn ends as it should"
#   done_testing
#
# The plan is printed by done_testing alone, so that a test which dies half-way has none and fails.
# Nothing here exits on its own, but for skip_all and a broken set-up.
set -u
export LC_ALL=C.UTF-8
unset DEBUGINFOD_URLS # some distributions set it for everybody: a test that wants a server has its own

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
B=${MACH6_BUILD:-$TOP/build}
P=$B/tests/programs             # helper programs, from tests/programs/
SHIM=$B/libmach6.so
MACH6=$B/mach6
COLLECTOR=$B/mach6-collector
TEST_NAME=$(basename "$0" .test)

# ---- the folder, and the end ----------------------------------------------------------------------------------------
TMP=$(mktemp -d "${TMPDIR:-/tmp}/mach6-test.XXXXXX") || exit 99
_pids=() _at_exit=() _n=0 _failed=0

# at_exit COMMAND... - runs when the test ends, last come first served.
at_exit() { _at_exit=("$(printf '%q ' "$@")" "${_at_exit[@]}"); }
_leave() {
  local status=$? c p
  for c in "${_at_exit[@]}"; do eval "$c"; done
  # A target that was killed leaves its segment to the next collector or mach6 ps; here nobody comes. Not so live stats: a
  # collector that leaves them is at fault.
  for p in "${_pids[@]}"; do
    stop "$p"
    rm -f "/dev/shm/mach6.$p."*
  done
  cd / && rm -rf "$TMP"
  exit "$status"
}
trap _leave EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# ---- TAP ------------------------------------------------------------------------------------------------------------
diag() { printf '%s\n' "$@" | sed 's/^/# /'; }
_name() { printf '%s' "${1//#/\\#}"; }
ok() { echo "ok $((++_n)) - $(_name "$1")"; }
not_ok() { # NAME [what to know...]
  echo "not ok $((++_n)) - $(_name "$1")"
  _failed=$((_failed + 1))
  shift
  [[ $# == 0 ]] || diag "$@"
  return 1
}
skip() { echo "ok $((++_n)) - $(_name "$1") # SKIP $2"; } # NAME REASON
skip_all() { echo "1..0 # SKIP $1"; exit 0; }             # REASON
is() { # GOT WANT NAME
  if [[ $1 == "$2" ]]; then ok "$3"; else not_ok "$3" "got:  $1" "want: $2"; fi
}
isnt() { # GOT UNWANTED NAME
  if [[ $1 != "$2" ]]; then ok "$3"; else not_ok "$3" "got what must not be: $1"; fi
}
like() { # GOT REGEX NAME
  if [[ $1 =~ $2 ]]; then ok "$3"; else not_ok "$3" "got:  ${1:0:2000}" "want: =~ $2"; fi
}
unlike() { # GOT REGEX NAME
  if [[ ! $1 =~ $2 ]]; then ok "$3"; else not_ok "$3" "got:  ${1:0:2000}" "want: !~ $2"; fi
}
within() { # GOT LOW HIGH NAME - integers or decimals; anything else is a failure
  if [[ $1 =~ ^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$ ]] && awk -v g="$1" -v l="$2" -v h="$3" 'BEGIN { exit !(g >= l && g <= h) }'; then
    ok "$4"
  else
    not_ok "$4" "got:  $1" "want: $2 .. $3"
  fi
}
same_file() { # GOT WANT NAME
  if cmp -s "$1" "$2"; then ok "$3"; else not_ok "$3" "$(diff -a -u "$2" "$1" 2>&1 | head -n 40)"; fi
}
check() { # NAME COMMAND... - the command must succeed; what it says is shown when it does not
  local name=$1 said
  shift
  if said=$("$@" 2>&1); then ok "$name"; else not_ok "$name" "status $? of: $*" "$said"; fi
}
done_testing() {
  echo "1..$_n"
  [[ $_failed == 0 ]] || exit 1
  exit 0
}

# ---- running things -------------------------------------------------------------------------------------------------
# run COMMAND... - in the foreground: $rc its exit status, $TMP/out and $TMP/err what it said.
run() {
  rc=0
  "$@" >"$TMP/out" 2>"$TMP/err" </dev/null || rc=$?
}
# with_shim COMMAND... - the shim comes before preloads that are there already. For a preload that is to come first, put
# env inside: with_shim env LD_PRELOAD=first.so:$SHIM ...
with_shim() { env LD_PRELOAD="$SHIM${LD_PRELOAD:+:$LD_PRELOAD}" "$@"; }
# start COMMAND... - in the background: $pid is its process, $TMP/N.out and $TMP/N.err what it says ($started_out,
# $started_err).
start() {
  started_out=$TMP/start.${#_pids[@]}.out started_err=$TMP/start.${#_pids[@]}.err
  "$@" >"$started_out" 2>"$started_err" </dev/null &
  pid=$!
  _pids+=("$pid")
}
# wait_for SECONDS COMMAND... - until the command succeeds; its status 1 when it never did.
wait_for() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < until)) || return 1
    sleep 0.05
  done
}
alive() { [[ -d /proc/$1 && $(sed 's/.*) //;s/ .*//' "/proc/$1/stat" 2>/dev/null) != [ZX] ]]; }
gone() { ! alive "$1"; }
# stop PID - asks, then insists. Quiet when it has ended already.
stop() {
  alive "$1" || { wait "$1" 2>/dev/null; return 0; }
  kill -TERM "$1" 2>/dev/null
  wait_for 3 gone "$1" || kill -KILL "$1" 2>/dev/null
  wait "$1" 2>/dev/null
  return 0
}
# finish PID - waits for a process of start; $rc is its exit status.
finish() {
  rc=0
  wait "$1" || rc=$?
}
segment_of() { compgen -G "/dev/shm/mach6.$1.*" >/dev/null; } # PID - does this target have a segment?
stats_of() { compgen -G "/dev/shm/mach6-stats.$1.*" >/dev/null; }

# bpf_left PREFIX... - programs, maps and links in the kernel whose names begin so and that are in nobody's hands: others on
# this machine may be counting, too. Those of the test itself are dead by then.
bpf_left() {
  local p
  for p in "$@"; do "$P/bpf_list" "$p"; done | awk '
    NR == FNR { if (/^(prog|map|link)_id:/) held[(/^prog/ ? "program" : /^map/ ? "map" : "link") " " $2] = 1; next }
    !held[$1 " " $2]' <(cat /proc/[0-9]*/fdinfo/* 2>/dev/null; echo) -
}

# json FILE FILTER - one value by jq; what is not there is "null", what is no JSON is "(not JSON)".
json() { jq -r "$2" "$1" 2>/dev/null || echo "(not JSON)"; }

# same_behaviour NAME COMMAND... - hard-cases.md's oracle D: stdout, exit status and files written are those of a run
# without the shim. $rc is the shimmed run's status; its output is in $TMP/with.out. Environment SHIM_ENV: words for
# env.
same_behaviour() {
  local name=$1 without_rc=0
  shift
  rm -rf "$TMP/without" "$TMP/with"
  mkdir "$TMP/without" "$TMP/with"
  (cd "$TMP/without" && exec "$@") >"$TMP/without.out" 2>"$TMP/without.err" </dev/null || without_rc=$?
  rc=0
  # shellcheck disable=SC2086
  (cd "$TMP/with" && exec env ${SHIM_ENV:-} LD_PRELOAD="$SHIM${LD_PRELOAD:+:$LD_PRELOAD}" "$@") \
    >"$TMP/with.out" 2>"$TMP/with.err" </dev/null || rc=$?
  is "$rc" "$without_rc" "$name: exit status as without the shim"
  same_file "$TMP/with.out" "$TMP/without.out" "$name: stdout as without the shim"
  check "$name: files as without the shim" diff -r "$TMP/with" "$TMP/without"
}

# other_user - can something run as nobody here? For tests of what others may do: it takes root, setpriv, and a root folder
# that others may enter, which that of a chroot need not be. No: skip by $NO_OTHER_USER.
NO_OTHER_USER="needs root, setpriv, and a / that others may enter"
other_user() {
  [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null && setpriv --reuid 65534 --regid 65534 --clear-groups true 2>/dev/null
}

# open_folder - $open: a folder that every user can reach, for tests that run as another one. The test's own need not be.
open_folder() {
  open=$(mktemp -d /tmp/mach6-open.XXXXXX) || exit 99
  chmod 755 "$open"
  at_exit rm -rf "$open"
}

# ---- what a game needs ----------------------------------------------------------------------------------------------
# need COMMAND... - skips the whole test, by name, when one is missing.
need() {
  local c
  for c in "$@"; do
    PATH=$PATH:/usr/games command -v "$c" >/dev/null || skip_all "$c is not installed (tools/setup test)"
  done
}
# game_home - an empty HOME that has no sound, no message bus and no shader cache, the same for each run.
game_home() {
  export HOME=$TMP/home
  mkdir -p "$HOME"
  printf 'pcm.!default { type null }\nctl.!default { type null }\n' >"$HOME/.asoundrc"
  export PATH=$PATH:/usr/games SDL_AUDIODRIVER=dummy DBUS_SESSION_BUS_ADDRESS=disabled: MESA_SHADER_CACHE_DISABLE=true
  export XDG_RUNTIME_DIR=$TMP/home
  chmod 700 "$HOME"
  unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME WAYLAND_DISPLAY DISPLAY
}
# x_start - an X server on a display that is free, for this test alone; exports DISPLAY.
x_start() {
  local display
  command -v Xvfb >/dev/null || skip_all "Xvfb is not installed (tools/setup test)"
  Xvfb -displayfd 3 -screen 0 1280x720x24 -nolisten tcp -noreset 3>"$TMP/display" >"$TMP/xvfb.log" 2>&1 </dev/null &
  _pids+=("$!")
  wait_for 30 test -s "$TMP/display" || { diag "$(tail -n 5 "$TMP/xvfb.log")"; echo "Bail out! no X server"; exit 99; }
  read -r display <"$TMP/display"
  export DISPLAY=:$display
}

[[ -d $B ]] || { echo "Bail out! $B is not there: run make first"; exit 99; }
cd "$TMP" || exit 99
