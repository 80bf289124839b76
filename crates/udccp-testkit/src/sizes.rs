//! Tables of the sizes of types, which tests compare with committed ones.

/// The sizes of these types in bytes, a line each, as text.
#[macro_export]
macro_rules! table_of_sizes {
    ($($name:ty),* $(,)?) => {
        [$(format!("{:>5} {}\n", size_of::<$name>(), stringify!($name))),*].concat()
    };
}
