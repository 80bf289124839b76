//! Pure functions from series to numbers: fairness, throughput, loss, delay, jitter.
