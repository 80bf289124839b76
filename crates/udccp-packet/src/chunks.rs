//! Cuts bytes into groups of a fixed size (`slice::as_chunks` needs Rust 1.88).

/// The whole groups of `N` bytes from the front of `bytes`.
#[inline]
pub fn chunks<const N: usize>(bytes: &[u8]) -> impl ExactSizeIterator<Item = [u8; N]> + '_ {
    bytes.chunks_exact(N).map(|chunk| {
        let mut group = [0; N];
        group.copy_from_slice(chunk);
        group
    })
}

/// The same, and the fewer than `N` bytes that are left.
#[inline]
pub fn chunks_and_tail<const N: usize>(
    bytes: &[u8],
) -> (impl ExactSizeIterator<Item = [u8; N]> + '_, &[u8]) {
    (chunks(bytes), &bytes[bytes.len() - bytes.len() % N..])
}
