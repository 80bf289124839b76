//! Cuts bytes into groups of a fixed size (`slice::as_chunks` needs Rust 1.88).

/// The complete groups of `N` bytes from the start of `bytes`.
#[inline]
pub fn chunks<const N: usize>(bytes: &[u8]) -> impl ExactSizeIterator<Item = [u8; N]> + '_ {
    bytes.chunks_exact(N).map(|chunk| {
        let mut group = [0; N];
        group.copy_from_slice(chunk);
        group
    })
}

/// The complete groups, and the remaining bytes (fewer than `N`).
#[inline]
pub fn chunks_and_tail<const N: usize>(
    bytes: &[u8],
) -> (impl ExactSizeIterator<Item = [u8; N]> + '_, &[u8]) {
    (chunks(bytes), &bytes[bytes.len() - bytes.len() % N..])
}
