//! DTLS over DCCP (RFC 5238): datagrams that are congestion-controlled, confidential and
//! authenticated.
//!
//! A [`DtlsConnection`] takes ownership of a [`udccp::Connection`]. From then on, everything sent
//! and received is protected, and nothing unencrypted can get in between.
//!
//! ```no_run
//! use udccp::{Connection, Listener, ServiceCode};
//! use udccp_dtls::{DtlsConnection, DtlsOptions, Identity};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // RFC 5238 section 3.6: a code of its own for the protected use of a service.
//! let service: ServiceCode = "SC:tsts".parse()?;
//! let identity = Identity::self_signed("sensor.example")?;
//! let pin = identity.fingerprint();
//!
//! let listener = Listener::bind("127.0.0.1:5004".parse()?, service)?;
//! tokio::spawn(async move {
//!     let options = DtlsOptions::new().identity(identity);
//!     let connection = DtlsConnection::server(listener.accept().await?, &options).await?;
//!     while let Some(message) = connection.recv().await? {
//!         connection.send(message).await?;
//!     }
//!     connection.close().await
//! });
//!
//! let connection = Connection::connect(([127, 0, 0, 1], 5004), service).await?;
//! let options = DtlsOptions::new().pin(pin);
//! let connection = DtlsConnection::client(connection, &options).await?;
//! connection.send("hello").await?;
//! assert_eq!(connection.recv().await?.as_deref(), Some(&b"hello"[..]));
//! connection.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Who is the peer?
//! A client has to say how to verify its server: by a pinned certificate ([`DtlsOptions::pin`]), a
//! check of its own ([`DtlsOptions::verify`]) or a shared key ([`DtlsOptions::psk`]). There is no
//! default; [`DtlsOptions::dangerous_accept_any`] explicitly verifies nothing. A server with one of
//! these settings asks its clients for a certificate.
//!
//! # Service codes
//! An application that runs with and without DTLS has a service code for each, so that middleboxes
//! can tell them apart (RFC 5238 section 3.6). One [`udccp::Listener`] can serve both. A new
//! version of DTLS needs no new code (section 3.7).
//!
//! # Messages
//! Each message is one record in one DCCP packet. It arrives whole and unchanged or not at all.
//! Replayed and forged packets are dropped and counted ([`DtlsStats`]).

#![forbid(unsafe_code)]

//= 5238-3.6-1
//= 5238-3.6-2
mod connection;
mod engine;
mod error;
mod fingerprint;
mod handshake;
mod identity;
mod options;
mod pump;
mod records;
mod shared;

pub use connection::DtlsConnection;
pub use error::{Alert, Error};
pub use fingerprint::{Fingerprint, ParseFingerprintError};
pub use identity::Identity;
pub use options::{DtlsOptions, Version};
pub use shared::DtlsStats;

/// Compiles the code of the guide, so that it stays correct.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/secure-and-media.md")]
struct SecureAndMediaGuide;

/// Compiles the code of the README, so that it stays correct.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
