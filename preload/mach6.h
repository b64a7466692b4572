/* mach6.h - name your own scopes and frames for mach6, in C and in C++.
 *
 *   mach6_mark("simulate");            opens a scope on this thread
 *   mach6_done();                      closes the innermost one
 *   mach6_frame();                     a frame ends here, for programs that present nothing (a server's tick)
 *
 *   MACH6_SCOPE("render");             opens one that closes where the enclosing block ends, however it is left
 *   mach6::scope s(name);              the same in C++, for names that are made at run time
 *
 * Nothing to link: the functions are looked up (dlsym) at a module's first call. Without the shim each call is one load and one
 * branch. With the shim but no session, a call more. In a session a mark and a done each read the clock and
 * write one record: about 15 ns each on current machines; a label that is not a literal costs a hash of its text on top.
 *
 * Labels: a string literal is looked up once a place; any other string, each time, and it need only live for the call. Equal text is one
 * label, wherever it comes from. Of a text longer than 255 bytes the beginning is shown. A segment has room
 * for 3072 labels; later ones are "(other)".
 * Scopes nest, by thread. mach6_mark gives the number of scopes that were open before it; mach6_done_to(that) closes it and
 * whatever was left open inside, so a scope guard is never wrong after a longjmp or a throw. A done without a mark does nothing
 * and is counted. Times are in the report in seconds, memory in KiB; a scope's memory is what its own thread allocated
 * and freed.
 * Thread-safe, and async-signal-safe after the module's first call. No function here blocks, allocates (but for that first
 * lookup, as dlsym may), or changes errno. A library that uses this may be unloaded at any time; close its scopes first.
 *
 * Needs GCC or Clang; C99 or C++98 on. A static program has no shim: the calls do nothing. On a glibc before 2.34 link with
 * -ldl, or the calls do nothing. The shim exports the same names as plain C symbols, for other languages:
 *   unsigned mach6_mark(const char *); void mach6_done(void); void mach6_done_to(unsigned); void mach6_frame(void);
 *
 * MIT licence; see LICENSE.
 */
#ifndef MACH6_H
#define MACH6_H

#ifdef __cplusplus
extern "C" {
#endif

#define MACH6_INLINE_ static __inline__ __attribute__((always_inline, unused))
#define MACH6_SHARED_ __attribute__((weak, visibility("hidden"))) /* one in each module, however many files include this */

/* What a place with a literal remembers: its label's number, and for which segment. */
struct mach6_site {
  unsigned key, id;
};

/* The shim's functions as this module knows them. They begin as lookups and are NULL where there is no shim. */
struct mach6_calls_ {
  unsigned (*mark)(const char *);
  unsigned (*mark_site)(struct mach6_site *, const char *);
  void (*done)(void);
  void (*done_to)(unsigned);
  void (*frame)(void);
};
MACH6_SHARED_ unsigned mach6_first_mark_(const char *label);
MACH6_SHARED_ unsigned mach6_first_mark_site_(struct mach6_site *site, const char *label);
MACH6_SHARED_ void mach6_first_done_(void);
MACH6_SHARED_ void mach6_first_done_to_(unsigned depth);
MACH6_SHARED_ void mach6_first_frame_(void);
extern MACH6_SHARED_ struct mach6_calls_ mach6_calls_;
MACH6_SHARED_ struct mach6_calls_ mach6_calls_ = {mach6_first_mark_, mach6_first_mark_site_, mach6_first_done_,
                                                  mach6_first_done_to_, mach6_first_frame_};

/* dlsym under a name of our own, so that this header neither needs dlfcn.h nor quarrels with it. */
extern void *mach6_dlsym_(void *handle, const char *symbol) __asm__("dlsym") __attribute__((weak));

MACH6_SHARED_ void mach6_lookup_(void);
MACH6_SHARED_ void mach6_lookup_(void)
{
  static const char *const names[] = {"mach6_mark", "mach6_mark_site", "mach6_done", "mach6_done_to", "mach6_frame"};
  void **to = (void **)(void *)&mach6_calls_;
  unsigned i;
  for (i = 0; i < sizeof names / sizeof *names; i++)
    __atomic_store_n(&to[i], mach6_dlsym_ ? mach6_dlsym_((void *)0 /* RTLD_DEFAULT */, names[i]) : (void *)0, __ATOMIC_RELAXED);
}

#define MACH6_CALL_(name) (__atomic_load_n(&mach6_calls_.name, __ATOMIC_RELAXED))

MACH6_INLINE_ unsigned mach6_mark(const char *label)
{
  unsigned (*f)(const char *) = MACH6_CALL_(mark);
  return __builtin_expect(f != 0, 0) ? f(label) : 0;
}
MACH6_INLINE_ unsigned mach6_mark_literal_(struct mach6_site *site, const char *label)
{
  unsigned (*f)(struct mach6_site *, const char *) = MACH6_CALL_(mark_site);
  return __builtin_expect(f != 0, 0) ? f(site, label) : 0;
}
/* The shim knows the scope by its stack frame, so the call must come from it: the barrier keeps it from becoming a jump when it
 * is the last of its function. */
MACH6_INLINE_ void mach6_done(void)
{
  void (*f)(void) = MACH6_CALL_(done);
  if (__builtin_expect(f != 0, 0)) f();
  __asm__ __volatile__("");
}
MACH6_INLINE_ void mach6_done_to(unsigned depth)
{
  void (*f)(unsigned) = MACH6_CALL_(done_to);
  if (__builtin_expect(f != 0, 0)) f(depth);
}
MACH6_INLINE_ void mach6_frame(void)
{
  void (*f)(void) = MACH6_CALL_(frame);
  if (__builtin_expect(f != 0, 0)) f();
}
MACH6_INLINE_ void mach6_close_(unsigned *depth) { mach6_done_to(*depth); }

MACH6_SHARED_ unsigned mach6_first_mark_(const char *label)
{
  mach6_lookup_();
  return mach6_mark(label);
}
MACH6_SHARED_ unsigned mach6_first_mark_site_(struct mach6_site *site, const char *label)
{
  mach6_lookup_();
  return mach6_mark_literal_(site, label);
}
MACH6_SHARED_ void mach6_first_done_(void)
{
  mach6_lookup_();
  mach6_done();
}
MACH6_SHARED_ void mach6_first_done_to_(unsigned depth)
{
  mach6_lookup_();
  mach6_done_to(depth);
}
MACH6_SHARED_ void mach6_first_frame_(void)
{
  mach6_lookup_();
  mach6_frame();
}

/* mach6_mark: a place whose argument is written as a literal gets a memory of its own; `(mach6_mark)(text)` never does. The
 * test is on the argument's spelling, because an optimiser may find variables constant too. */
#define mach6_mark(label) MACH6_MARK_(label)
#define MACH6_MARK_(label)                                                                                             \
  (__extension__({                                                                                                     \
    static struct mach6_site mach6_site_;                                                                              \
    (#label)[0] == '"' && __builtin_constant_p(label) ? mach6_mark_literal_(&mach6_site_, label)                       \
                                                      : (mach6_mark)(label);                                           \
  }))

#define MACH6_JOIN_(a, b) a##b
#define MACH6_NAME_(a, b) MACH6_JOIN_(a, b)
#define MACH6_SCOPE(label)                                                                                             \
  unsigned MACH6_NAME_(mach6_scope_, __LINE__) __attribute__((cleanup(mach6_close_), unused)) = mach6_mark(label)

#ifdef __cplusplus
}

namespace mach6 {
class scope {
public:
  __attribute__((always_inline)) explicit scope(const char *label) : depth_((mach6_mark)(label)) {}
  __attribute__((always_inline)) ~scope() { mach6_done_to(depth_); }

private:
  scope(const scope &);
  scope &operator=(const scope &);
  unsigned depth_;
};
} // namespace mach6
#endif

#endif
