/* embed.S - one kernel program's object as bytes in read-only data: m6_blob_NAME, m6_blob_NAME_size long.
 * Assembled once for each object, with -DNAME=... and -DOBJECT="..."; libbpf opens it from memory, so that nothing has to be found
 * at run time and no tool has to turn it into C.
 */
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define BEGIN PASTE(m6_blob_, NAME)
#define SIZE PASTE(BEGIN, _size)

  .section .rodata
  .global BEGIN, SIZE
  .hidden BEGIN
  .hidden SIZE
  .balign 8
BEGIN:
  .incbin OBJECT
1:
  .balign 8
SIZE:
  .quad 1b - BEGIN
  .section .note.GNU-stack, "", %progbits
