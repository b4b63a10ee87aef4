//! `fontana certify`.

use crate::args::CertifyArguments;
use crate::key_file;
use crate::manifest_file;
use fontana::{Certificate, Outcome};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use std::path::Path;

/// Makes the certificate of a mirror.
pub(crate) fn run(arguments: &CertifyArguments, console: &Console) -> Result<Outcome, Failure> {
    let CertifyArguments { manifest, mirror, sign, expires, output } = arguments;
    let Some(manifest) = manifest_file::read(manifest)? else {
        let message = format!("there is no manifest {manifest:?}");
        let hint = "make it with: fontana send FILE --manifest MANIFEST";
        return Err(Failure::new(Outcome::Usage, message, hint));
    };
    let publisher = key_file::read(sign, key_file::KEYGEN)?;
    let lifetime = Some(*expires).filter(|time| !time.is_zero());
    let certificate = Certificate::issue(&manifest, &publisher, *mirror, lifetime)?;
    write(output, &certificate.to_file_text())?;
    console.note(format_args!("the certificate is in {output:?}: copy it to the mirror"));
    Ok(Outcome::Complete)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| {
        let message = format!("cannot write {path:?}: {error}");
        Failure::new(Outcome::Refused, message, "choose a directory that this user may write to")
    })
}
