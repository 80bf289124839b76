//! Value bytes and preference lists.
