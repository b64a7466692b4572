/* dl.S - the entries of dlsym, dlvsym, dlopen and dlmopen: ask route.c or versioned.c, then answer or jump to the real function.
 *
 * A jump, not a call: the real ones take the caller's module from the return address on the stack, which stays in place
 * here. Argument registers are kept around the question; no vector argument exists. At a function's entry the stack is
 * 8 off a multiple of
 * 16. Other architectures have none of this: there, presents that are looked up by dlsym on a handle stay unseen.
 */
#if defined(__x86_64__)
	.text

	.macro entry name
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	.endm

	.macro save reg
	pushq	\reg
	.cfi_adjust_cfa_offset 8
	.endm

	.macro restore reg
	popq	\reg
	.cfi_adjust_cfa_offset -8
	.endm

	.macro leave name
	.cfi_endproc
	.size	\name, . - \name
	.endm

/* void *dlsym(void *handle, const char *name): m6_dlsym_choose answers with rax, or with where to go in rdx. */
	entry	dlsym
	save	%rdi
	save	%rsi
	movq	16(%rsp), %rdx
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	m6_dlsym_choose
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	restore	%rsi
	restore	%rdi
	testq	%rdx, %rdx
	jz	1f
	jmp	*%rdx
1:	ret
	leave	dlsym

/* void *dlvsym(void *handle, const char *name, const char *version): the same, by m6_dlvsym_choose. */
	entry	dlvsym
	save	%rdi
	save	%rsi
	save	%rdx
	movq	24(%rsp), %rcx
	call	m6_dlvsym_choose
	movq	%rdx, %rcx
	restore	%rdx
	restore	%rsi
	restore	%rdi
	testq	%rcx, %rcx
	jz	1f
	jmp	*%rcx
1:	ret
	leave	dlvsym

/* void *dlopen(const char *file, int mode) */
	entry	dlopen
	save	%rdi
	save	%rsi
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	m6_dlopen_target
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	restore	%rsi
	restore	%rdi
	jmp	*%rax
	leave	dlopen

/* void *dlmopen(Lmid_t space, const char *file, int mode) */
	entry	dlmopen
	save	%rdi
	save	%rsi
	save	%rdx
	call	m6_dlmopen_target
	restore	%rdx
	restore	%rsi
	restore	%rdi
	jmp	*%rax
	leave	dlmopen
#endif

	.section .note.GNU-stack, "", @progbits
#if defined(__x86_64__) && defined(__CET__)
/* Every entry opens with endbr64 and nothing here breaks a shadow stack: say so, or the linker drops it for the
 * library. */
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.string	"GNU"
	.long	0xc0000002, 4, 3, 0
#endif
