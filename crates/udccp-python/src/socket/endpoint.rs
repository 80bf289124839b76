//! Endpoints, listeners and handshakes for Python.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

use pyo3::prelude::*;
use udccp::{EarlyReadiness, Readiness, ServiceCode, blocking};

use super::address::{self, Parts};
use super::connection::Connection;
use super::settings::{EndpointSettings, Settings};
use super::{raise, wait};
use crate::border;

/// A UDP or raw socket that carries any number of connections.
#[pyclass(frozen, module = "udccp._native")]
pub(super) struct Endpoint(blocking::Endpoint);

#[pymethods]
impl Endpoint {
    #[new]
    fn bind(
        py: Python<'_>,
        ip: &str,
        port: u16,
        scope: u32,
        endpoint_settings: EndpointSettings,
    ) -> PyResult<Self> {
        border::guard(py, || {
            let at = address::socket_address(ip, port, scope)?;
            let options = endpoint_settings.options();
            let bound = py.detach(|| blocking::Endpoint::bind_with(at, &options));
            Ok(Self(bound.map_err(|e| raise(&e))?))
        })
    }

    /// The bound address; the port is 0 over raw IP.
    fn local_addr(&self) -> Parts {
        address::parts(self.0.local_addr().into())
    }

    fn available_ccids(&self) -> Vec<u8> {
        self.0.available_ccids()
    }

    #[pyo3(signature = (port, services, settings, backlog, early=None))]
    fn listen(
        &self,
        py: Python<'_>,
        port: u16,
        services: Vec<u32>,
        settings: Settings,
        backlog: usize,
        early: Option<&Early>,
    ) -> PyResult<Listener> {
        border::guard(py, || {
            let services: Vec<ServiceCode> = services.into_iter().map(ServiceCode).collect();
            let options = settings.options().backlog(backlog.max(1));
            let listening = py.detach(|| self.0.listen(port, services, &options));
            let listener = listening.map_err(|e| raise(&e))?;
            if let Some(early) = early.and_then(Early::take) {
                listener.set_readiness(early).map_err(|e| raise(&e))?;
            }
            Ok(Listener { inner: Mutex::new(Some(listener)), is_closed: AtomicBool::new(false) })
        })
    }

    /// Starts to connect. `local_port` is our DCCP port; if it is missing, one is chosen.
    #[pyo3(signature = (peer, service, settings, local_port, early=None))]
    fn start_connect(
        &self,
        py: Python<'_>,
        peer: Parts,
        service: u32,
        settings: Settings,
        local_port: Option<u16>,
        early: Option<&Early>,
    ) -> PyResult<Handshake> {
        border::guard(py, || {
            let peer = address::address(&peer)?;
            let mut options = settings.options();
            if let Some(port) = local_port {
                options = options.local_port(port);
            }
            let started = py.detach(|| self.0.start_connect(peer, ServiceCode(service), &options));
            let connecting = started.map_err(|e| raise(&e))?;
            if let Some(early) = early.and_then(Early::take) {
                connecting.set_readiness(early).map_err(|e| raise(&e))?;
            }
            Ok(Handshake { inner: Mutex::new(Some(connecting)), is_closed: AtomicBool::new(false) })
        })
    }
}

/// A descriptor requested before there is anything to wait on. It is never ready until the first
/// listener or handshake takes it over.
#[pyclass(frozen, module = "udccp._native")]
pub(super) struct Early {
    descriptor: Readiness,
    to_give: Mutex<Option<EarlyReadiness>>,
}

impl Early {
    fn take(&self) -> Option<EarlyReadiness> {
        self.to_give.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl Early {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        border::guard(py, || {
            let early = EarlyReadiness::new().map_err(|e| raise(&e))?;
            Ok(Self { descriptor: early.readiness(), to_give: Mutex::new(Some(early)) })
        })
    }

    fn fileno(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }
}

/// Converts the result of a call that does not wait.
fn poll_of_try<T, E>(result: Result<Option<T>, E>) -> Poll<Result<T, E>> {
    result.transpose().map_or(Poll::Pending, Poll::Ready)
}

/// Serves service codes on a DCCP port.
#[pyclass(frozen, module = "udccp._native")]
pub(super) struct Listener {
    inner: Mutex<Option<blocking::Listener>>,
    is_closed: AtomicBool,
}

impl Listener {
    fn with<T>(
        &self,
        call: impl FnOnce(&blocking::Listener) -> Result<T, udccp::Error>,
    ) -> PyResult<T> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        call(inner.as_ref().ok_or_else(wait::closed)?).map_err(|e| raise(&e))
    }
}

#[pymethods]
impl Listener {
    /// The next connection with a finished handshake.
    fn accept(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Connection> {
        let forget = |task: &Waker| {
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.iter().for_each(|listener| listener.remove_waker(task));
        };
        wait::until(py, timeout_s, &self.is_closed, None, forget, |cx| {
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(listener) = inner.as_ref() else { return Poll::Ready(Err(wait::closed())) };
            let accepted = match cx {
                Some(cx) => listener.poll_accept(cx),
                None => poll_of_try(listener.try_accept()),
            };
            accepted.map_ok(Connection::new).map_err(|e| raise(&e))
        })
    }

    /// A descriptor that is readable if `accept` would not wait.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        border::guard(py, || Ok(self.with(blocking::Listener::readiness)?.as_raw_fd()))
    }

    fn set_services(&self, py: Python<'_>, services: Vec<u32>) -> PyResult<()> {
        let services: Vec<ServiceCode> = services.into_iter().map(ServiceCode).collect();
        border::guard(py, || self.with(|listener| listener.set_services(services)))
    }

    /// The address with the DCCP port.
    fn local_addr(&self, py: Python<'_>) -> PyResult<Parts> {
        border::guard(py, || {
            self.with(|listener| {
                let mut address = udccp::Address::from(listener.local_addr());
                address.port = listener.port();
                Ok(address::parts(address))
            })
        })
    }

    /// Stops listening, and ends the `accept` calls of other threads.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        drop(self.inner.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// A connection during its handshake.
#[pyclass(frozen, module = "udccp._native")]
pub(super) struct Handshake {
    inner: Mutex<Option<blocking::Connecting>>,
    is_closed: AtomicBool,
}

impl Handshake {
    fn with<T>(
        &self,
        call: impl FnOnce(&mut blocking::Connecting) -> Result<T, udccp::Error>,
    ) -> PyResult<T> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        call(inner.as_mut().ok_or_else(wait::closed)?).map_err(|e| raise(&e))
    }
}

#[pymethods]
impl Handshake {
    /// Waits until data can flow and returns the connection. Works once.
    fn finish(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Connection> {
        let forget = |task: &Waker| {
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.iter().for_each(|connecting| connecting.remove_waker(task));
        };
        wait::until(py, timeout_s, &self.is_closed, None, forget, |cx| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(connecting) = inner.as_mut() else { return Poll::Ready(Err(wait::closed())) };
            let connected = match cx {
                Some(cx) => connecting.poll_connect(cx),
                None => poll_of_try(connecting.try_connect()),
            };
            connected.map_ok(Connection::new).map_err(|e| raise(&e))
        })
    }

    /// A descriptor that is writable when data can flow, and hangs up if the handshake fails. The
    /// connection keeps using it.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        border::guard(py, || Ok(self.with(|connecting| connecting.readiness())?.as_raw_fd()))
    }

    fn local_addr(&self, py: Python<'_>) -> PyResult<Option<Parts>> {
        border::guard(py, || {
            self.with(|connecting| Ok(connecting.local_addr().map(address::parts)))
        })
    }

    /// Cancels the handshake with a Reset to the server, and ends the waits of other threads.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        drop(self.inner.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
