# shellcheck shell=bash
# model.sh - runs a spin model: without faults it must come out with none, with each planted one it must find it. The faults
# are those that the model's own comment lists after "Planted faults".
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
need spin cc

# verify FILE [-DFAULT] - makes and runs the verifier; what it says is in $TMP/pan.log. A fault ends the search early: there, to optimise
# the verifier takes longer than to run it.
verify() {
  local file=$1 optimise=-O2
  shift
  [[ $# == 0 ]] || optimise=-O0
  rm -rf "$TMP/model" && mkdir "$TMP/model" && cd "$TMP/model" || return 1
  cp "$file" model.pml
  spin -a "$@" model.pml >"$TMP/pan.log" 2>&1 || return 1
  cc $optimise -DSAFETY -w -o pan pan.c >>"$TMP/pan.log" 2>&1 || return 1
  ./pan -m100000 >"$TMP/pan.log" 2>&1
}
errors() { sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$TMP/pan.log"; }

model() { # FILE, from the top of the tree
  local file=$TOP/$1 fault faults
  verify "$file"
  is "$(errors)" 0 "$1 holds" || diag "$(tail -n 20 "$TMP/pan.log")"
  is "$(grep -cE 'search not completed|max search depth too small' "$TMP/pan.log")" 0 "$1: the search was complete"
  is "$(awk '/^unreached in/ { getline; if ($1 != "(0") n++ } END { print n + 0 }' "$TMP/pan.log")" 0 "$1: every statement is reached"
  faults=$(sed -n '/Planted faults/,/\*\//p' "$file" | grep -oE -e '-D[A-Z_]+(=[0-9]+)?')
  isnt "$faults" "" "$1 plants faults"
  for fault in $faults; do
    verify "$file" "$fault"
    is "$(errors)" 1 "$1 finds $fault" || diag "$(tail -n 20 "$TMP/pan.log")"
  done
  done_testing
}
