/* libfakeunder - calls a present of a library that it doesn't name. */
unsigned eglSwapBuffers(void *, void *);
unsigned under_present(void *display, void *surface);
unsigned under_present(void *display, void *surface) { return eglSwapBuffers(display, surface); }
