//! The stored form of records: compressed JSON. Series make up most of a record and compress well:
//! a run with two flows and 300 samples takes some kilobytes.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Fast, and at most 10 % larger than with slow levels.
const LEVEL: i32 = 3;

/// Compresses a value as JSON.
///
/// # Errors
/// The value has no JSON form.
pub(super) fn pack(value: &impl Serialize) -> io::Result<Vec<u8>> {
    pack_text(&serde_json::to_string(value)?)
}

/// Compresses a text.
///
/// # Errors
/// Does not occur for text in memory.
pub(super) fn pack_text(text: &str) -> io::Result<Vec<u8>> {
    zstd::encode_all(text.as_bytes(), LEVEL)
}

/// Decompresses a value.
///
/// # Errors
/// The bytes are not the output of [`pack`].
pub(super) fn unpack<T: DeserializeOwned>(packed: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(&zstd::decode_all(packed)?)?)
}
