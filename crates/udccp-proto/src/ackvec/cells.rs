//! Runs of cells that grow towards the front.
