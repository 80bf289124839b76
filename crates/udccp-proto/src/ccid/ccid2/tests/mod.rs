//! CCID 2 against traces computed by hand, and against the law of random loss.
