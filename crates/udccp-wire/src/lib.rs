//! DCCP packets as bytes: views, owned packets, options, checksums, UDP encapsulation.
