# shellcheck shell=bash
# real.sh - what the tests with games that nobody here wrote share.
#
# A game runs twice: as it is, and under `mach6 run` beside a counting preload that shares no code with mach6. The
# second must behave as the first, its books must close, its allocations must be those that the preload counted.
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
J=$TMP/report.json

# What a game says, without what differs from run to run: numbers, addresses, times.
plain() { sed -E 's/\x1b\[[0-9;]*m//g; s/0x[0-9a-fA-F]+/0xN/g; s/[0-9]+([.:][0-9]+)*/N/g' "$1" | eval "${REAL_FILTER:-cat}"; }

# How many presents has the game under the `mach6 run` of this pid made?
_presents_of_run() {
  local child
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
    "$MACH6" stat "$child" --json 2>/dev/null | jq -e .presents 2>/dev/null && return
  done
  echo 0
}
# And the game as it is, by the preload that counts presents?
_presents_of_game() {
  od -A n -v -t u8 "$TMP/plain.presents" 2>/dev/null | awk '{ for (i = 1; i <= NF; i++) if ($i > most) most = $i } END { print most + 0 }'
}

# _end_after SECONDS PRESENTS ASK FILES COMMAND... - runs it; it gets SIGTERM when it has played that long (0: never)
# and, where PRESENTS is not 0, has presented as often as ASK says; at the latest after a minute more. Sets rc.
_end_after() {
  local seconds=$1 presents=$2 ask=$3 files=$4
  shift 4
  "$@" >"$files.out" 2>"$files.err" </dev/null &
  local p=$! end=$((SECONDS + seconds))
  _pids+=("$p")
  if [[ $seconds != 0 ]]; then
    while ((SECONDS < end)) && kill -0 "$p" 2>/dev/null; do sleep 0.2; done
    while ((presents > 0 && SECONDS < end + 60)) && kill -0 "$p" 2>/dev/null; do
      (($("$ask" "$p") < presents)) || break
      sleep 0.5
    done
    kill -TERM "$p" 2>/dev/null
  fi
  rc=0
  wait "$p" 2>/dev/null || rc=$?
  unset '_pids[-1]'
}

# real [-t SECONDS [-n PRESENTS]] [-s SETUP] [-p] COMMAND... - both runs and what must hold for every game.
#   -t  ended by SIGTERM after that long, and with -n when it has presented so often
#   -s  a command that prepares the working directory, which is a new one for each run
#   -p  presents are counted independently, too
# Afterwards $J is the report, $rc the status of the profiled run, $without_rc the plain one's.
real() {
  local seconds=0 least=0 setup=: preload=$P/libcountpreload.so twice=
  while [[ $1 == -* ]]; do
    case $1 in
      -t) seconds=$2; shift 2 ;;
      -n) least=$2; shift 2 ;;
      -s) setup=$2; shift 2 ;;
      -p) preload+=:$P/libcountpresents.so; twice=1; shift ;;
    esac
  done
  mkdir -p "$TMP/plain.d" "$TMP/mach6.d" "$TMP/counts"
  export COUNT_PROGRAM=${1##*/}
  cd "$TMP/plain.d" && $setup
  if [[ $twice ]]; then # so that both runs come as far
    _end_after "$seconds" "$least" _presents_of_game "$TMP/plain" \
      env COUNT_PRESENTS="$TMP/plain.presents" LD_PRELOAD="$P/libcountpresents.so" "$@"
  else
    _end_after "$seconds" 0 : "$TMP/plain" "$@"
  fi
  without_rc=$rc
  cd "$TMP/mach6.d" && $setup
  _end_after "$seconds" "$least" _presents_of_run "$TMP/mach6" \
    env COUNT_DIR="$TMP/counts" COUNT_PRESENTS="$TMP/mach6.presents" LD_PRELOAD="$preload" "$MACH6" run --json "$J" -- "$@"
  cd "$TMP" || exit 99
  is "$rc" "$without_rc" "exit status as without mach6" || diag "$(tail -n 20 "$TMP/mach6.err")"
  plain "$TMP/plain.out" >"$TMP/plain.txt"
  plain "$TMP/mach6.out" >"$TMP/mach6.txt"
  same_file "$TMP/mach6.txt" "$TMP/plain.txt" "stdout as without mach6"
  check "there is a report" test -s "$J" || { diag "$(tail -n 20 "$TMP/mach6.err")"; done_testing; }
  is "$(json "$J" .books.closed)" true "the books close" || diag "$(json "$J" '.books, .losses')"
  is "$(json "$J" '(.books.sum_d_bytes + .books.sum_i_bytes) == (.books.reading_now_bytes - .books.reading_start_bytes)')" true \
    "sum D + sum I = what the reading changed by"
  is "$(json "$J" '.allocs.counted')" true "allocations are counted"
  # A process that is killed in the middle of a call may have been counted by one of the two: one call a thread.
  slack=0
  [[ $rc -lt 128 ]] || slack=$(json "$J" .session.threads.seen)
  compare_counts
}

# The report's totals against the preload's.
compare_counts() {
  local kind pid ours theirs
  pid=$(json "$J" .target.pid)
  if ! "$P/count_show" "$TMP/counts/$pid" >"$TMP/counts.json"; then
    not_ok "the counting preload was there" "$(ls "$TMP/counts")"
    return
  fi
  # operator new comes through malloc for the preload, and is a kind of its own for mach6.
  for kind in malloc+new calloc realloc aligned; do
    ours=$(json "$J" ".allocs | [$(sed 's/[a-z]*/.&.count/g; s/+/,/g' <<<"$kind")] | add")
    theirs=$(json "$TMP/counts.json" ".${kind%+*}")
    within "$ours" $((theirs - slack)) $((theirs + slack)) "$kind: $theirs calls, by both counts"
  done
  ours=$(json "$J" .allocs.frees) theirs=$(json "$TMP/counts.json" .frees)
  within "$ours" $((theirs - slack)) $((theirs + slack)) "free: $theirs blocks, by both counts"
  if [[ $slack == 0 ]]; then
    is "$(json "$J" .allocs.total.bytes)" "$(json "$TMP/counts.json" '.malloc_bytes + .calloc_bytes + .realloc_bytes + .aligned_bytes')" \
      "bytes handed out, by both counts"
    is "$(json "$J" .allocs.freed_bytes)" "$(json "$TMP/counts.json" '.freed_bytes + .old_bytes')" "bytes given back, by both counts"
  fi
}

# presents_as SYMBOL [EXTRA] - as many as the second count saw: at least those that returned, at most those that were
# entered, which are the same unless the game was killed in one. EXTRA: presents that only mach6 sees. And they are of
# one stream.
COUNTED=(glXSwapBuffers eglSwapBuffers SDL_GL_SwapWindow SDL_RenderPresent SDL_GL_SwapBuffers SDL_Flip glfwSwapBuffers vkQueuePresentKHR)
presents_as() {
  local i entered=none returned=none extra=${2:-0}
  for i in "${!COUNTED[@]}"; do [[ ${COUNTED[i]} == "$1" ]] && break; done
  read -r entered returned < <(od -A n -v -t d8 -j $((16 * i)) -N 16 "$TMP/mach6.presents")
  within "$(json "$J" .presents)" $((returned + extra)) $((entered + extra)) "$returned presents by $1, by both counts"
  is "$(json "$J" '.streams | length')" 1 "one window, one stream" || diag "$(json "$J" .streams)"
}
# presents LOW HIGH - and the node `frame` counts one less.
presents() {
  local n
  n=$(json "$J" .presents)
  within "$n" "$1" "$2" "$n presents"
  is "$(json "$J" '[.root.children[] | select(.label == "frame") | .stats.count] | add')" "$((n - 1))" "the node frame counts presents - 1"
}
# source_is SYMBOL ROUTE - regular expressions.
source_is() {
  like "$(json "$J" '.frame_source | .symbol + " by " + .route')" "^($1) by ($2)\$" "frames from $1 by $2"
}
# allocs_a_frame LOW HIGH - the average inside frames.
allocs_a_frame() {
  local n
  n=$(json "$J" '.root.children[] | select(.label == "frame") | .stats["allocs.count"] / .stats.count')
  within "$n" "$1" "$2" "allocations a frame"
}

# minetest_world - what minetest needs, in the current folder.
minetest_world() {
  mkdir world
  printf '%s\n' gameid=devtest world_name=t {backend,player_backend,auth_backend,mod_storage_backend}=sqlite3 >world/world.mt
  printf '%s\n' enable_sound=false fullscreen=false screen_w=320 screen_h=240 viewing_range=60 mg_name=v7 fixed_map_seed=42 \
    fps_max=500 fps_max_unfocused=500 pause_on_lost_focus=false vsync=false name=tester >mt.conf
}
