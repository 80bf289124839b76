//! Records as they lie in the store: JSON, compressed. Series are most of a record; their numbers
//! repeat, so that a run of two flows and 300 samples takes some kilobytes.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Fast, and within a tenth of what the slow levels reach.
const LEVEL: i32 = 3;

/// A value as compressed JSON.
///
/// # Errors
/// A value that has no JSON form.
pub(super) fn pack(value: &impl Serialize) -> io::Result<Vec<u8>> {
    pack_text(&serde_json::to_string(value)?)
}

/// A text, compressed.
///
/// # Errors
/// None that a text can cause.
pub(super) fn pack_text(text: &str) -> io::Result<Vec<u8>> {
    zstd::encode_all(text.as_bytes(), LEVEL)
}

/// The value again.
///
/// # Errors
/// Bytes that are not what [`pack`] gave.
pub(super) fn unpack<T: DeserializeOwned>(packed: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(&zstd::decode_all(packed)?)?)
}
