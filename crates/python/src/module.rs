//! The module, as Python imports it.

use crate::codes::{decode, encode};
use crate::failure::{Failed, kinds};
use crate::session::{Session, receive, send};
use pyo3::prelude::*;

/// What the package `fontana` is built on.
#[pymodule]
fn _fontana(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Failed", module.py().get_type::<Failed>())?;
    module.add_class::<Session>()?;
    module.add_function(wrap_pyfunction!(send, module)?)?;
    module.add_function(wrap_pyfunction!(receive, module)?)?;
    module.add_function(wrap_pyfunction!(kinds, module)?)?;
    module.add_function(wrap_pyfunction!(encode, module)?)?;
    module.add_function(wrap_pyfunction!(decode, module)?)
}
