# trace_valid.jq - what is wrong with trace events, as the format's document and Perfetto's importer read them; empty for a trace that is right.
# Input: the trace. Output: an array of complaints, a few at most.
# Perfetto: times become whole nanoseconds, what is beyond the point is cut; a complete event that begins within another of its track and
# ends after it is dropped; a counter's arguments are numbers; a track without a name is a number.
def whole: type == "number" and . == floor and . >= 0 and . < 2147483648;
def ns: . * 1000 | floor;
def complaint($e; $why): "\($why): \($e | tojson)[0:200]";
def shape:
  . as $e
  | if .ph == "X" then {name: "string", pid: "number", tid: "number", ts: "number", dur: "number", args: "object", ph: "string"}
    elif .ph == "C" then {name: "string", pid: "number", ts: "number", args: "object", ph: "string"}
    elif .ph == "i" then {name: "string", pid: "number", tid: "number", ts: "number", s: "string", args: "object", ph: "string"}
    elif .ph == "M" then {name: "string", pid: "number", tid: "number", args: "object", ph: "string"}
    else null end
  | if . == null then complaint($e; "no such phase")
    elif . != ($e | map_values(type)) then complaint($e; "not the members, or not the types, of its phase")
    else
      ($e | select((.pid | whole | not) or (has("tid") and (.tid | whole | not))) | complaint(.; "pid and tid are numbers of 31 bits")),
      ($e | select(has("ts") and (.ts < 0 or .ts > 1e15)) | complaint(.; "a time of no session")),
      ($e | select(has("dur") and (.dur < 0 or .dur > 1e15)) | complaint(.; "a duration of no session")),
      ($e | select(.ph != "M" and .name == "") | complaint(.; "no name")),
      ($e | select(.ph == "i" and .s != "t") | complaint(.; "an instant of a thread")),
      ($e | select(.ph == "C" and (.args == {} or (.args | map(type == "number") | all | not))) | complaint(.; "a counter has numbers")),
      ($e | select(.ph == "M" and ((.name != "process_name" and .name != "thread_name") or (.args | keys != ["name"]) or (.args.name | type) != "string"))
        | complaint(.; "metadata is a name"))
    end;
def named: # each track's name, once, before anything is on it
  reduce .traceEvents[] as $e ({names: {}, bad: []};
    "\($e.pid)" as $p | "\($e.pid)/\($e.tid)" as $t
    | if $e.ph == "M" then
        (if $e.name == "process_name" then $p else $t end) as $key
        | if .names[$key] then .bad += [complaint($e; "named twice")] else .names[$key] = true end
      elif .names[$p] != true then .bad += [complaint($e; "a process without a name")]
      elif $e.ph != "C" and .names[$t] != true then .bad += [complaint($e; "a thread without a name")]
      else . end) | .bad[];
def nested:
  [.traceEvents[] | select(.ph == "X")] | group_by([.pid, .tid])[]
  | reduce (map({e: ., from: (.ts | ns), to: ((.ts | ns) + (.dur | ns))}) | sort_by([.from, -.to])[]) as $x ({open: [], bad: []};
      .open |= map(select(. > $x.from))
      | (if any(.open[]; . < $x.to) then .bad += [complaint($x.e; "it overlaps another, and would be dropped")] else . end)
      | .open += [$x.to]) | .bad[];
def counted: # one value of a counter at a time
  [.traceEvents[] | select(.ph == "C")] | group_by([.pid, .name, .ts])[] | select(length > 1) | complaint(.[0]; "two values at once");
[ (if (keys - ["displayTimeUnit", "otherData", "traceEvents"]) != [] then "members that no reader knows" else empty end),
  (if .displayTimeUnit != "ms" then "displayTimeUnit" else empty end),
  (if (.traceEvents | type) != "array" or (.traceEvents | length) == 0 then "no events" else empty end),
  (.traceEvents[] | shape) ] as $shapes
| if $shapes != [] then $shapes else [named, nested, counted] end | .[:5]
