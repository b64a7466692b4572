# The paths of all keys of a report, one a line, as mach6-json(5) names them: what recurs stands once.
def paths_of($p):
  if type == "object" then
    to_entries[] | (if $p == "budgets" then "budgets.NAME" elif $p == "" then .key else "\($p).\(.key)" end) as $q | $q, (.value | paths_of($q))
  elif type == "array" then .[] | paths_of($p + "[]")
  else empty end;
[paths_of("")
  | gsub("children\\[\\]\\."; "") | sub("^sites\\.mapped\\.rows\\[\\]"; "sites.rows[]") | sub("^root\\.(?<k>(label|stats|children)\\b)"; "NODE.\(.k)")
  | sub("^.*\\boff_cpu\\.(?<k>[a-z_]+)$"; "OFF_CPU.\(.k)")
  | sub("^sites\\.(rows\\[\\]\\.)?(made|in_frames|live|same_frame)\\.(?<k>[a-z]+)$"; "AMOUNT.\(.k)")
] | unique | .[]
