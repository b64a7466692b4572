/* libfakeversioned - a graphics library with versions, and two of one function: what the older one did counts in fake_old as well. */
/* flags: -Wl,-Bsymbolic -Wl,--version-script=tests/programs/libfakeversioned.map */
int fake_presents, fake_old;

unsigned new_swap(void *display, void *surface)
{
  (void)display, (void)surface;
  fake_presents++;
  return 1;
}
unsigned old_swap(void *display, void *surface)
{
  fake_old++;
  return new_swap(display, surface) + 1;
}
__asm__(".symver old_swap, eglSwapBuffers@FAKE_1\n.symver new_swap, eglSwapBuffers@@FAKE_2");
