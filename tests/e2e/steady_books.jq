# The books of a session of tests/programs/steady against what it does: in each frame $pairs blocks of one size, each given back at once.
# Input: a report. Output: an array of what is wrong, empty when all is right to the byte.
# $torn: blocks that a kill may have caught between two counters. All else is exact, whatever records were lost: frames whose boundaries
# are known have just theirs, those that are not known are in startup or shutdown.
def near($got; $want; $room; $what): if $got < $want - $room or $got > $want + $room then "\($what): \($got), not \($want)" else empty end;
def part($name): [.root.children[] | select(.label == $name).stats] | .[0] | values;
def count: .["allocs.count"];
(.allocs.total | if .count > 0 then .bytes / .count | round else 0 end) as $size
| [part("startup"), part("frame"), part("shutdown")] as $parts
| ([.seconds.rows[][1]] | add // 0) as $frames
| ((if .presents > 0 then .presents - 1 else 0 end) - $frames) as $unknown
| [
    near(.books.sum_d_bytes + .books.sum_i_bytes; .books.reading_now_bytes - .books.reading_start_bytes; 0; "D + I"),
    near([$parts[] | .["mem_delta.bytes"] + .["inverse_mem.bytes"]] | add // 0; .books.sum_d_bytes + .books.sum_i_bytes; 0; "the parts' D + I"),
    near([$parts[] | count] | add // 0; .allocs.total.count; 0; "the parts' allocations"),
    near(.allocs.total.bytes; .allocs.total.count * $size; $torn * $size; "bytes allocated"),
    near(.books.reading_now_bytes - .books.reading_start_bytes; (.allocs.total.count - .allocs.frees) * $size; $torn * $size; "the heap reading"),
    near(.allocs.total.count - .allocs.frees; 0; 1; "blocks that live"),
    near([.seconds.rows[][6]] | add // 0; .allocs.total.count; 0; "the seconds' allocations"),
    near([.seconds.rows[][7]] | add // 0; .allocs.total.bytes; 0; "the seconds' bytes"),
    (part("frame")
      | near(count; $frames * $pairs; 0; "allocations in frames"),
        near(.["mem_delta.bytes"]; 0; 0; "frames' D"), near(.["inverse_mem.bytes"]; 0; 0; "frames' I")),
    near([part("startup", "shutdown") | count] | add // 0; ($unknown + 1) * $pairs; $pairs; "allocations beside the frames"),
    (if $unknown < 0 or $unknown > .losses.frames_lost then "\($unknown) frames have no place" else empty end)
  ]
