//! Harm: how much worse a flow does next to another than alone.
//!
//! Source: Ware, Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index: Setting the Bar for
//! the Deployment of Congestion Control Algorithms" (HotNets 2019), section 3.

use crate::undefined::{Measured, Undefined, check};

/// Harm to a quantity for which more is better (throughput): `(x - y) / x`, with `x` alone and `y`
/// in competition. 0 is no harm and 1 the maximum; a negative value means that the flow does better
/// in competition.
///
/// # Errors
/// [`Undefined::ZeroReference`] if the value alone is zero, [`Undefined::BadInput`].
pub fn harm_more_is_better(alone: f64, beside: f64) -> Measured {
    check(&[alone, beside])?;
    if alone == 0.0 {
        return Err(Undefined::ZeroReference);
    }
    Ok((alone - beside) / alone)
}

/// Harm to a quantity for which less is better (delay, loss, jitter): `(y - x) / y`, with `x` alone
/// and `y` in competition.
///
/// # Errors
/// [`Undefined::ZeroReference`] when it is zero in competition, [`Undefined::BadInput`].
pub fn harm_less_is_better(alone: f64, beside: f64) -> Measured {
    check(&[alone, beside])?;
    if beside == 0.0 {
        return Err(Undefined::ZeroReference);
    }
    Ok((beside - alone) / beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_throughput_or_twice_the_delay_is_a_harm_of_a_half() {
        assert_eq!(harm_more_is_better(90.0, 45.0), Ok(0.5));
        assert_eq!(harm_less_is_better(10.0, 20.0), Ok(0.5));
        assert_eq!(harm_more_is_better(10.0, 0.0), Ok(1.0));
        assert_eq!(harm_more_is_better(10.0, 12.0), Ok(-0.2));
        assert_eq!(harm_more_is_better(0.0, 1.0), Err(Undefined::ZeroReference));
        assert_eq!(harm_less_is_better(0.0, 0.0), Err(Undefined::ZeroReference));
    }

    #[test]
    fn cubic_harms_ccid2_more_than_ccid2_does() {
        // "Revisiting inter-flow fairness" Tables III and IV at 100 ms; alone the link is full.
        let alone = 94.0;
        let by_itself = harm_more_is_better(alone, 45.0).unwrap();
        let by_cubic = harm_more_is_better(alone, 17.0).unwrap();
        assert!(by_cubic > by_itself);
    }
}
