//! What the last call of a thread failed with.

use crate::text::to_c;
use fontana::Outcome;
use fontana_bindings::Failure;
use fontana_console::exit;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

struct Last {
    kind: CString,
    text: CString,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Runs what a call does. Remembers its error, and returns its code. A panic is an error: it may
/// not reach C.
pub(crate) fn code_of(call: impl FnOnce() -> Result<i32, Failure>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let message = format!("a defect of this library: {}", text.unwrap_or_default());
        Err(Failure { kind: None, outcome: Outcome::InternalError, message })
    });
    let (code, last) = match result {
        Ok(code) => (code, None),
        Err(failure) => {
            let (kind, text) = (to_c(&failure.kind_name()), to_c(&failure.message));
            (i32::from(failure.code()), Some(Last { kind, text }))
        }
    };
    LAST.set(last);
    code
}

fn last(part: impl FnOnce(&Last) -> *const c_char) -> *const c_char {
    LAST.with_borrow(|last| last.as_ref().map_or(ptr::null(), part))
}

/// What the last call of this thread failed with: what is wrong, with the values. Null if it did
/// not fail. Valid until the next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn fontana_error_text() -> *const c_char {
    last(|last| last.text.as_ptr())
}

/// The kind of error that the last call of this thread failed with, by which a program handles it:
/// "SourceMissing", "TargetExists", "Argument" and others. Null if it did not fail. Valid until the
/// next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn fontana_error_kind() -> *const c_char {
    last(|last| last.kind.as_ptr())
}

/// The word for a code: "complete", "incomplete" and others. Null if there is no such code.
#[unsafe(no_mangle)]
pub extern "C" fn fontana_code_word(code: i32) -> *const c_char {
    let outcome = Outcome::ALL.into_iter().find(|outcome| i32::from(exit::code(*outcome)) == code);
    let word: Option<&std::ffi::CStr> = outcome.map(|outcome| match outcome {
        Outcome::Complete => c"complete",
        Outcome::Usage => c"usage",
        Outcome::Incomplete => c"incomplete",
        Outcome::VerificationFailed => c"verification_failed",
        Outcome::Io => c"io",
        Outcome::Refused => c"refused",
        Outcome::Authentication => c"authentication",
        Outcome::SourceChanged => c"source_changed",
        Outcome::ReceiversIncomplete => c"receivers_incomplete",
        Outcome::InternalError => c"internal_error",
        Outcome::NothingReceived => c"nothing_received",
        Outcome::Interrupted => c"interrupted",
    });
    word.map_or(ptr::null(), |word| word.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_console::json::verdict;
    use std::ffi::CStr;

    fn text(pointer: *const c_char) -> Option<String> {
        // SAFETY: what this module returns ends with 0, and is used at once.
        (!pointer.is_null())
            .then(|| unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_owned())
    }

    #[test]
    fn codes_have_the_words_of_the_program() {
        for outcome in Outcome::ALL {
            let word = text(fontana_code_word(i32::from(exit::code(outcome))));
            assert_eq!(word.as_deref(), Some(verdict(outcome)));
        }
        assert!(fontana_code_word(1).is_null());
    }

    #[test]
    fn a_panic_is_an_error_and_the_next_call_forgets_it() {
        assert_eq!(code_of(|| std::panic::resume_unwind(Box::new("at once"))), 70);
        let found = text(fontana_error_text());
        assert_eq!(found.as_deref(), Some("a defect of this library: at once"));
        assert_eq!(code_of(|| Ok(3)), 3);
        assert_eq!(text(fontana_error_kind()), None);
    }
}
