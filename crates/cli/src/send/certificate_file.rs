//! The file of `fontana send --certificate`.

use fontana::{Certificate, Outcome};
use fontana_console::failure::Failure;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest file that is read: a certificate has less than 500 characters.
const MOST: u64 = 4_096;

/// Reads the certificate of a mirror.
pub(super) fn read(path: &Path) -> Result<Certificate, Failure> {
    let refused = |error: &dyn Display| {
        let message = format!("the certificate {path:?}: {error}");
        let hint = "get one from the publisher: fontana certify";
        Failure::new(Outcome::Authentication, message, hint)
    };
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MOST).read_to_string(&mut text))
        .map_err(|error| refused(&error))?;
    text.parse().map_err(|error| refused(&error))
}
