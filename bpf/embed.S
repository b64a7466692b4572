/* embed.S - one kernel program's object as bytes in read-only data: m6_blob_NAME .. m6_blob_NAME_end.
 * Assembled once for each object, with -DNAME=... and -DOBJECT="..."; libbpf opens it from memory, so that nothing has to be found
 * at run time and no tool has to turn it into C.
 */
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define BEGIN PASTE(m6_blob_, NAME)
#define END PASTE(BEGIN, _end)

  .section .rodata
  .global BEGIN, END
  .hidden BEGIN
  .hidden END
  .balign 8
BEGIN:
  .incbin OBJECT
END:
  .byte 0
  .section .note.GNU-stack, "", %progbits
