//! Tests of the buffers and the decoders.
