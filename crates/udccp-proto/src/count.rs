//! Counts in narrow fields what is rare.

/// Adds to a narrow counter: `count!(counters, syncs_sent += 1)`. What the field cannot hold is
/// added to the wide counter of the same name among `counters.rare()`.
macro_rules! count {
    ($counters:expr, $name:ident += $more:expr) => {{
        let counters = &mut $counters;
        let (sum, is_over) = counters.$name.overflowing_add($more);
        counters.$name = sum;
        if is_over {
            counters.rare().$name += 1 << (8 * size_of_val(&sum));
        }
    }};
}

pub(crate) use count;
