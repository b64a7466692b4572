/* fake_plugin.h - a plugin that is linked with a fake graphics library. */
#include <dlfcn.h>
#include <stddef.h>
unsigned eglSwapBuffers(void *, void *);
int plugin_present(void *display, void *surface);
void *plugin_look(const char *name);
int plugin_present_tail(void *display, void *surface);
/* volatile: no tail call, so that whoever is called sees this library as its caller. */
int plugin_present(void *display, void *surface)
{
  volatile int result = (int)eglSwapBuffers(display, surface);
  return result;
}
int plugin_present_tail(void *display, void *surface) { return (int)eglSwapBuffers(display, surface); }
void *plugin_look(const char *name)
{
  void *volatile found = dlsym(RTLD_DEFAULT, name);
  return found;
}
