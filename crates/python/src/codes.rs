//! RaptorQ in memory.

use crate::failure::raised;
use fontana_bindings::Failure;
use fontana_fec::object::{Decoder, Encoder};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fmt::Display;

fn wrong(name: &str) -> impl Fn(Box<dyn Display>) -> PyErr {
    let name = name.to_owned();
    move |reason| raised(Failure::argument(&name, reason))
}

/// The parameters (OTI) of an object, its packets, and as many repair packets of each block.
#[pyfunction]
pub(crate) fn encode<'py>(
    py: Python<'py>,
    data: &[u8],
    symbol_size: u16,
    repair: u32,
) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)> {
    let encoded = py.detach(|| {
        let encoder = Encoder::new(data, symbol_size)?;
        Ok((encoder.oti(), encoder.packets(repair).collect::<Vec<_>>()))
    });
    let (oti, packets) = encoded
        .map_err(|error: fontana_fec::object::ObjectError| wrong("data")(Box::new(error)))?;
    let packets = packets.iter().map(|packet| PyBytes::new(py, packet)).collect();
    Ok((PyBytes::new(py, &oti), packets))
}

/// The object, if the packets are enough for it.
#[pyfunction]
pub(crate) fn decode<'py>(
    py: Python<'py>,
    oti: &[u8],
    packets: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let oti = oti.try_into().map_err(|_| wrong("oti")(Box::new("it has 12 bytes")))?;
    let mut decoder = Decoder::new(oti).map_err(|error| wrong("oti")(Box::new(error)))?;
    for packet in packets.try_iter()? {
        let packet = packet?;
        let packet = packet.cast::<PyBytes>()?.as_bytes();
        let pushed = py.detach(|| decoder.push(packet));
        if let Some(object) = pushed.map_err(|error| wrong("packets")(Box::new(error)))? {
            return Ok(Some(PyBytes::new(py, &object)));
        }
    }
    Ok(None)
}
