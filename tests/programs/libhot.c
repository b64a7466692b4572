/* libhot.c - a library that hotsplit --lib burns in, and removes while it does. */
/* flags: -fno-omit-frame-pointer */
long lib_hot(long n);
static __attribute__((noinline, noclone)) long lib_hidden(long n)
{
  volatile long x = 0;
  for (long i = 0; i < n; i++) x += i;
  return x;
}
long lib_hot(long n)
{
  volatile long x = 0;
  for (long i = 0; i < n / 2; i++) x += i;
  return lib_hidden(n / 2) + x;
}
