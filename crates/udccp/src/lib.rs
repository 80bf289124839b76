//! DCCP sockets in userspace.
#![forbid(unsafe_code)]

mod io;
