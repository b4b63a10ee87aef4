//! Texts of C.

use fontana_bindings::Failure;
use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A text for C. What follows a zero byte is left out: C would not see it.
pub(crate) fn to_c(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// A text from C; `None` for a null pointer.
///
/// # Errors
/// It is not UTF-8.
///
/// # Safety
/// `text` is null, or points to bytes that end with 0 and stay unchanged during `'a`.
pub(crate) unsafe fn from_c<'a>(
    name: &str,
    text: *const c_char,
) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|error| Failure::argument(name, error))
}

/// A path from C, of any bytes; `None` for a null pointer.
///
/// # Safety
/// As of [`from_c`].
pub(crate) unsafe fn path_from_c(path: *const c_char) -> Option<PathBuf> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    let path = unsafe { CStr::from_ptr(path) };
    Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
}
