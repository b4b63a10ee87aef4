//! Errors on their way to the package, which makes its own classes of them.

use fontana::ErrorKind;
use fontana_bindings::Failure;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    fontana._fontana,
    Failed,
    PyException,
    "An error: its kind, its code, and what is wrong."
);

/// The exception of an error.
pub(crate) fn raised(failure: impl Into<Failure>) -> PyErr {
    let failure = failure.into();
    Failed::new_err((failure.kind_name(), failure.code(), failure.message))
}

/// The names of all kinds of errors.
#[pyfunction]
pub(crate) fn kinds() -> Vec<String> {
    let names = ErrorKind::ALL.iter().map(|kind| format!("{kind:?}"));
    names.chain([Failure::ARGUMENT.to_owned()]).collect()
}
