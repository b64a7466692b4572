/* libfakeshim.c - stands in for the shim where only its being loaded matters. */
int fakeshim_is_here(void);
int fakeshim_is_here(void) { return 1; }
