/* libsibling - what liborigin looks for. */
int sibling_answer(void);
int sibling_answer(void) { return 42; }
