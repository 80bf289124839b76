//! Which of our packets said what.
