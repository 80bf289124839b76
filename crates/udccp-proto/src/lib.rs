//! DCCP endpoint and connection as a pure state machine (RFC 4340, RFC 4341).
