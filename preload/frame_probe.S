/* frame_probe.S - two places that do nothing, for the kernel to be told of a frame boundary by.
 *
 *   m6_frame_entered(stream, number, whole)      a present begins, which will have this number in its stream, as far as one can tell;
 *                                                whole: a boundary that is over in this moment, and has it
 *   m6_frame_corrected(stream, number)           the one that began last in this thread turned out another; number 0: it failed
 *
 * So a frame is one hit of a probe, and few are two.
 *
 * While nobody probes them each is a call, a 5-byte nop and a return. The nop is what a uprobe costs least on: the kernel steps over it
 * without a trap of its own. So nothing may come before it, no endbr64 either: these are never called by pointer. They are
 * exported, as mach6_probe_entered and mach6_probe_corrected, for a stripped library must be probed, too; calls go to the hidden
 * names, which nobody can interpose. Arguments are where the C calling convention has them: the kernel side reads them there
 * (bpf/counters_frames.h).
 */
.macro place name, exported
  .globl \name, \exported
  .hidden \name
  .type \name, %function
  .type \exported, %function
  .p2align 4
\name:
\exported:
#if defined(__x86_64__) || defined(__i386__)
  .byte 0x0f, 0x1f, 0x44, 0x00, 0x00
#else
  nop
#endif
  ret
  .size \name, . - \name
  .size \exported, . - \exported
.endm

  .text
  place m6_frame_entered, mach6_probe_entered
  place m6_frame_corrected, mach6_probe_corrected
  .section .note.GNU-stack, "", %progbits
