/* hash_free.h - gives back every element of a uthash table (whose handle is named hh), and the table. FREE: a function
 * of one element. */
#ifndef M6_HASH_FREE_H
#define M6_HASH_FREE_H

#include <uthash.h>

#define M6_HASH_FREE(head, FREE)                                                                                       \
  do {                                                                                                                 \
    __typeof__(head) at_ = (head), next_;                                                                              \
    HASH_CLEAR(hh, head);                                                                                              \
    for (; at_; at_ = next_) {                                                                                         \
      next_ = at_->hh.next;                                                                                            \
      FREE(at_);                                                                                                       \
    }                                                                                                                  \
  } while (0)

#endif
