//! A window algorithm written in Python, for the simulator.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use udccp_base::{Duration, Instant};
use udccp_cc::{AckSample, Algorithm, CongestionControl, CustomAlgorithm};

/// The first exception in any algorithm of a run; it ends the run.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    /// The exception, if there was one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// The algorithms by the names of their flows, created by calling `factories` with an initial
/// window.
pub(crate) fn algorithms(
    factories: Vec<(String, Py<PyAny>)>,
    failure: &Failure,
    stop: &Arc<AtomicBool>,
) -> Vec<(String, Algorithm)> {
    let one = |(flow, factory): (String, Py<PyAny>)| {
        let (factory, failure, stop) = (Arc::new(factory), failure.clone(), Arc::clone(stop));
        let build = move |first: u32| -> Box<dyn CongestionControl> {
            let object = Python::attach(|py| factory.call1(py, (first,)));
            let mut window = Window {
                object: None,
                cwnd: first.max(1),
                ssthresh: u32::MAX,
                max: u32::MAX,
                failure: failure.clone(),
                stop: Arc::clone(&stop),
            };
            match object {
                Ok(object) => window.object = Some(Arc::new(object)),
                Err(error) => window.fail(error),
            }
            Box::new(window)
        };
        (flow, Algorithm::Custom(CustomAlgorithm::new("python", build)))
    };
    factories.into_iter().map(one).collect()
}

/// A window controlled by a Python object, a `udccp.WindowAlgorithm`.
struct Window {
    object: Option<Arc<Py<PyAny>>>,
    cwnd: u32,
    ssthresh: u32,
    max: u32,
    failure: Failure,
    stop: Arc<AtomicBool>,
}

impl core::fmt::Debug for Window {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Window").field("cwnd", &self.cwnd).finish_non_exhaustive()
    }
}

impl Clone for Window {
    /// The copy gets a deep copy of the object, independent of the original.
    fn clone(&self) -> Self {
        let copy = |object: &Arc<Py<PyAny>>| {
            Python::attach(|py| {
                let copied = py.import("copy")?.call_method1("deepcopy", (object.bind(py),))?;
                PyResult::Ok(Arc::new(copied.unbind()))
            })
        };
        let mut clone = Self {
            object: None,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            max: self.max,
            failure: self.failure.clone(),
            stop: Arc::clone(&self.stop),
        };
        match self.object.as_ref().map(copy).transpose() {
            Ok(object) => clone.object = object,
            Err(error) => clone.fail(error),
        }
        clone
    }
}

/// Seconds since the start.
fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}

impl Window {
    /// Ends the run, which raises this exception.
    fn fail(&mut self, error: PyErr) {
        self.failure.set(error);
        self.stop.store(true, Ordering::Relaxed);
        self.object = None;
    }

    /// Calls a method that returns window and threshold.
    fn call<A>(&mut self, method: &str, arguments: A)
    where
        A: for<'py> pyo3::call::PyCallArgs<'py>,
    {
        let Some(object) = &self.object else { return };
        let moved = Python::attach(|py| {
            object.call_method1(py, method, arguments)?.extract::<(f64, f64)>(py)
        });
        match moved {
            // Values out of range are clamped; NaN becomes the minimum.
            Ok((cwnd, ssthresh)) => {
                self.cwnd = (cwnd as u32).clamp(1, self.max);
                self.ssthresh = (ssthresh as u32).max(2);
            }
            Err(error) => self.fail(error),
        }
    }
}

impl CongestionControl for Window {
    fn name(&self) -> &'static str {
        "python"
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let time = |of: Option<Duration>| of.map(|d| d.as_secs_f64());
        let rtts = (time(ack.rtt), time(ack.srtt), time(ack.min_rtt));
        let counts = (ack.newly_acked, ack.in_flight, ack.cwnd_limited);
        self.call("_ack", (seconds(ack.now), counts.0, rtts.0, rtts.1, rtts.2, counts.1, counts.2));
    }

    fn on_congestion_event(&mut self, now: Instant, in_flight: u32) {
        self.call("_loss", (seconds(now), in_flight));
    }

    fn on_rto(&mut self, now: Instant, in_flight: u32) {
        self.call("_timeout", (seconds(now), in_flight));
    }

    fn set_window(&mut self, now: Instant, cwnd: u32, ssthresh: u32) {
        self.cwnd = cwnd.clamp(1, self.max);
        self.ssthresh = ssthresh.max(2);
        self.call("_set", (seconds(now), self.cwnd, self.ssthresh));
    }

    fn clamp(&mut self, max_cwnd: u32) {
        self.max = max_cwnd.max(1);
        self.cwnd = self.cwnd.min(self.max);
    }
}
