# shellcheck shell=bash disable=SC2034
# doom.sh - the data of the doom games.
. "$(dirname "${BASH_SOURCE[0]}")/real.sh"
WAD=/usr/share/games/doom/freedoom1.wad
[[ -f $WAD ]] || skip_all "freedoom1.wad is not installed (tools/setup test)"
demo_lump() {
  LUMP=$TMP/demo1.lmp
  "$P/wad_lump" "$WAD" DEMO1 >"$LUMP" || { echo "Bail out! no DEMO1 in $WAD"; exit 99; }
}
