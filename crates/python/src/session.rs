//! Senders and receivers.

use crate::buffer::Buffer;
use crate::failure::raised;
use fontana::{CancellationToken, Events, ReceiveEvent, Receiver, SendEvent, Sender};
use fontana_bindings::{Failure, ReceiveOptions, SendOptions, event, staging_in_memory};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The time after which a wait looks for Ctrl-C.
const ATTENTION: Duration = Duration::from_millis(100);

/// A session, which runs on threads of its own.
#[pyclass(frozen, module = "fontana._fontana")]
pub(crate) struct Session {
    /// Taken when it is joined.
    running: Mutex<Option<Running>>,
    token: CancellationToken,
    #[pyo3(get)]
    ticket: Option<String>,
    description: Option<Value>,
    /// The buffer that it receives into.
    buffer: Option<Arc<Buffer>>,
}

enum Running {
    Sender(Box<Sender>, Events<SendEvent>),
    Receiver(Receiver, Events<ReceiveEvent>),
}

impl Running {
    /// Waits until an event is there or the session has ended, but not for long.
    fn wait(&self, most: Duration) -> bool {
        match self {
            Self::Sender(_, events) => events.wait(most),
            Self::Receiver(_, events) => events.wait(most),
        }
    }

    /// The next event; `None` after the last one. Does not block after `wait`.
    fn next(&mut self) -> Option<Value> {
        match self {
            Self::Sender(_, events) => events.next().as_ref().map(event::of_sender),
            Self::Receiver(_, events) => events.next().as_ref().map(event::of_receiver),
        }
    }

    /// The report, and the errors of what was given up.
    fn join(self) -> Result<(Value, Vec<Failure>), Failure> {
        Ok(match self {
            Self::Sender(sender, _) => {
                let report = sender.join()?;
                (event::sent(&report), Failure::of_parts(&report.failures))
            }
            Self::Receiver(receiver, _) => {
                let report = receiver.join()?;
                (event::received(&report), Failure::of_parts(&report.failures))
            }
        })
    }
}

impl Session {
    fn new(running: Running, token: CancellationToken) -> Self {
        let description = match &running {
            Running::Sender(sender, _) => Some(event::session(sender)),
            Running::Receiver(..) => None,
        };
        let ticket = description.as_ref().and_then(|session| session["ticket"].as_str());
        let ticket = ticket.map(str::to_owned);
        let running = Mutex::new(Some(running));
        Self { running, token, ticket, description, buffer: None }
    }

    /// Waits for an event, but not longer than this. `None`: not yet.
    fn step(&self, most: Duration) -> Option<Option<Value>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *running {
            None => Some(None),
            Some(session) => session.wait(most).then(|| session.next()),
        }
    }

    /// Waits for bytes of the buffer, and takes events. Whether they are there; `None`: not yet.
    fn await_bytes(&self, buffer: &Buffer, range: &Range<u64>) -> Option<bool> {
        if buffer.memory.wait(range, ATTENTION) {
            return Some(true);
        }
        while let Some(event) = self.step(Duration::ZERO) {
            if event.is_none() {
                return Some(buffer.memory.wait(range, Duration::ZERO));
            }
        }
        None
    }
}

#[pymethods]
impl Session {
    /// What is sent.
    #[getter]
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.description.as_ref().map(|value| object(py, value)).transpose()
    }

    /// Bytes of the buffer that are verified, from its beginning.
    #[getter]
    fn written(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.memory.verified_prefix())
    }

    /// Waits until these bytes of the buffer are verified, without events. False: the session has
    /// ended without them.
    fn wait(&self, py: Python<'_>, start: u64, stop: u64) -> PyResult<bool> {
        let no_buffer = || raised(Failure::argument("wait", "the session has no buffer"));
        let buffer = self.buffer.as_ref().ok_or_else(no_buffer)?;
        loop {
            match py.detach(|| self.await_bytes(buffer, &(start..stop))) {
                Some(are_there) => return Ok(are_there),
                None => py.check_signals()?,
            }
        }
    }

    /// The next event; `None` when the session has ended.
    fn next_event<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            match py.detach(|| self.step(ATTENTION)) {
                Some(Some(event)) => return object(py, &event).map(Some),
                Some(None) => return Ok(None),
                None => py.check_signals()?,
            }
        }
    }

    /// Waits for the end, without events. The report, and the errors of what was given up, as
    /// texts; `None` if another call has them.
    fn join<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, Vec<String>)>> {
        while self.next_event(py)?.is_some() {}
        let report = py.detach(|| {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
            running.map(Running::join).transpose()
        });
        let Some((report, failures)) = report.map_err(raised)? else { return Ok(None) };
        let failures = failures.into_iter().map(|failure| failure.message).collect();
        Ok(Some((object(py, &report)?, failures)))
    }

    /// Requests the end.
    fn stop(&self) {
        self.token.cancel();
    }
}

/// Options of a sender, from a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SendKeywords {
    to: Option<String>,
    interface: Option<String>,
    rate: Option<u64>,
    hop_limit: Option<u8>,
    name: Option<String>,
    push: Option<u32>,
    tsi: Option<u64>,
    memory: Option<usize>,
    parts: Vec<(u64, u64)>,
}

/// Starts a sender.
#[pyfunction]
pub(crate) fn send(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    keywords: SendKeywords,
) -> PyResult<Session> {
    let options = SendOptions {
        to: keywords.to.as_deref(),
        interface: keywords.interface.as_deref(),
        rate: keywords.rate,
        hop_limit: keywords.hop_limit,
        name: keywords.name.as_deref(),
        push: keywords.push,
        tsi: keywords.tsi,
        memory: keywords.memory,
        parts: &keywords.parts,
    };
    let token = CancellationToken::new();
    let start = || {
        let sender = options.builder(paths)?.cancellation_token(&token).start()?;
        let events = sender.events();
        Ok(Running::Sender(Box::new(sender), events))
    };
    let running = py.detach(start).map_err(|failure: Failure| raised(failure))?;
    Ok(Session::new(running, token))
}

/// Options of a receiver, from a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ReceiveKeywords {
    ticket: Option<String>,
    group: Option<String>,
    interface: Option<String>,
    overwrite: bool,
    skip_existing: bool,
    timeout: Option<f64>,
    silence: Option<f64>,
    max_bytes: Option<u64>,
    memory: Option<usize>,
}

/// Starts a receiver into a directory; or into a memoryview, with repair symbols in a directory.
#[pyfunction]
pub(crate) fn receive(
    py: Python<'_>,
    directory: Option<PathBuf>,
    into: Option<&Bound<'_, PyAny>>,
    keywords: ReceiveKeywords,
) -> PyResult<Session> {
    let seconds = |name: &str, seconds: Option<f64>| {
        let duration = seconds.map(Duration::try_from_secs_f64).transpose();
        duration.map_err(|error| raised(Failure::argument(name, error)))
    };
    let options = ReceiveOptions {
        ticket: keywords.ticket.as_deref(),
        group: keywords.group.as_deref(),
        interface: keywords.interface.as_deref(),
        overwrite: keywords.overwrite,
        skip_existing: keywords.skip_existing,
        timeout: seconds("timeout", keywords.timeout)?,
        silence: seconds("silence", keywords.silence)?,
        max_bytes: keywords.max_bytes,
        memory: keywords.memory,
    };
    let buffer = into.map(Buffer::new).transpose()?.map(Arc::new);
    let token = CancellationToken::new();
    let start = || {
        let builder = options.builder()?.cancellation_token(&token);
        let receiver = match (&buffer, directory) {
            (Some(buffer), directory) => {
                let staging = directory.unwrap_or_else(staging_in_memory);
                builder.into_memory(Arc::clone(buffer), staging).start()?
            }
            (None, directory) => builder.into_dir(directory.unwrap_or(".".into())).start()?,
        };
        let events = receiver.events();
        Ok(Running::Receiver(receiver, events))
    };
    let running = py.detach(start).map_err(|failure: Failure| raised(failure))?;
    Ok(Session { buffer, ..Session::new(running, token) })
}

/// A value of JSON as an object of Python.
fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(is) => is.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any(),
            (None, Some(number)) => number.into_pyobject(py)?.into_any(),
            (None, None) => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(values) => {
            let values: PyResult<Vec<_>> = values.iter().map(|value| object(py, value)).collect();
            PyList::new(py, values?)?.into_any()
        }
        Value::Object(fields) => {
            let dictionary = PyDict::new(py);
            for (name, value) in fields {
                dictionary.set_item(name, object(py, value)?)?;
            }
            dictionary.into_any()
        }
    })
}
