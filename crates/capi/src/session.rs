//! Senders and receivers.

use crate::error::code_of;
use crate::text::{from_c, path_from_c, to_c};
use fontana::{CancellationToken, Outcome, Receiver, Sender};
use fontana_bindings::{
    Failure, GivenMemory, ReceiveOptions, SendOptions, event, staging_in_memory,
};
use fontana_console::exit;
use serde_json::Value;
use std::ffi::{CString, c_char, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Options of a sender. All 0 are the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types)]
pub struct fontana_send_options {
    /// The group and port, or a host and port; null: 239.255.77.1:7701.
    pub to: *const c_char,
    /// The network interface: its name, address or network; null: that of the routing table.
    pub interface_name: *const c_char,
    /// The name that receivers give a single file; null: its own.
    pub name: *const c_char,
    /// Bits per second at most, headers included; 0: 100 Mbit/s.
    pub rate: u64,
    /// TTL or hop limit of multicast; 0: 1, this network only.
    pub hop_limit: u8,
    /// End when everything was sent once. Otherwise the sender sends until it is stopped.
    pub once: bool,
    /// With once: repair symbols per thousand source symbols, which make good what is lost.
    pub repair_permille: u32,
}

/// Options of a receiver. All 0 are the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types)]
pub struct fontana_receive_options {
    /// Without a ticket: the group and port; null: 239.255.77.1:7701.
    pub group: *const c_char,
    /// The network interface: its name, address or network; null: that of the routing table.
    pub interface_name: *const c_char,
    /// Replace files that exist.
    pub overwrite: bool,
    /// Give up after this many milliseconds; 0: never.
    pub timeout_ms: u64,
    /// Give up if nothing has arrived for this many milliseconds; 0: a minute.
    pub silence_ms: u64,
    /// Bytes that a session may have at most; 0: 2^45.
    pub max_bytes: u64,
    /// Into a buffer: the directory of repair symbols, which are in files without a name until
    /// their blocks are verified; null: /dev/shm, which is memory, or that of temporary files.
    pub staging: *const c_char,
}

/// A sender or a receiver, which runs on threads of its own.
#[allow(non_camel_case_types)]
pub struct fontana_session {
    /// Taken when it is joined.
    running: Mutex<Option<Running>>,
    token: CancellationToken,
    ticket: Option<CString>,
    /// The buffer that it receives into.
    memory: Option<Arc<GivenMemory>>,
}

enum Running {
    Sender(Box<Sender>),
    Receiver(Receiver),
}

/// What takes the events of a session: their name, and all of it as a JSON object, with the fields
/// of docs/events.md. Both texts are valid until it returns. It may stop the session.
#[allow(non_camel_case_types)]
pub type fontana_on_event =
    Option<extern "C" fn(context: *mut c_void, name: *const c_char, json: *const c_char)>;

/// Starts a sender of files and directories. Returns 0, or the code of an error.
///
/// # Safety
/// `paths` has `count` texts. `options` is null or valid, and so are its texts. `session` is where
/// the session goes; fontana_free frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fontana_send(
    paths: *const *const c_char,
    count: usize,
    options: *const fontana_send_options,
    session: *mut *mut fontana_session,
) -> i32 {
    code_of(|| {
        let mut files: Vec<PathBuf> = Vec::with_capacity(count);
        for number in 0..count {
            // SAFETY: `paths` has `count` elements, by the contract of this function.
            let path = unsafe { path_from_c(*paths.add(number)) };
            files.push(path.ok_or_else(|| Failure::argument("paths", "a path is null"))?);
        }
        // SAFETY: null or valid, by the contract of this function.
        let given = unsafe { options.as_ref() };
        let mut options = SendOptions::default();
        if let Some(given) = given {
            // SAFETY: the texts of valid options are valid.
            unsafe {
                options.to = from_c("to", given.to)?;
                options.interface = from_c("interface_name", given.interface_name)?;
                options.name = from_c("name", given.name)?;
            }
            options.rate = (given.rate > 0).then_some(given.rate);
            options.hop_limit = (given.hop_limit > 0).then_some(given.hop_limit);
            options.push = given.once.then_some(given.repair_permille);
        }
        let token = CancellationToken::new();
        let sender = options.builder(files)?.cancellation_token(&token).start()?;
        let ticket = Some(to_c(&sender.description().ticket.to_string()));
        let running = Mutex::new(Some(Running::Sender(Box::new(sender))));
        let started = fontana_session { running, token, ticket, memory: None };
        // SAFETY: valid, by the contract of this function.
        unsafe { hand_over(started, session) }
    })
}

/// Starts a receiver into a directory, which is created if it does not exist. A null ticket: the
/// first session on the group. Returns 0, or the code of an error.
///
/// # Safety
/// `ticket` and `directory` are texts. `options` is null or valid, and so are its texts. `session`
/// is where the session goes; fontana_free frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fontana_receive(
    ticket: *const c_char,
    directory: *const c_char,
    options: *const fontana_receive_options,
    session: *mut *mut fontana_session,
) -> i32 {
    code_of(|| {
        // SAFETY: texts, and null or valid options, by the contract of this function.
        let (options, directory) =
            unsafe { (receive_options(ticket, options)?, path_from_c(directory)) };
        let directory = directory.ok_or_else(|| Failure::argument("directory", "it is null"))?;
        let token = CancellationToken::new();
        let receiver = options.builder()?.cancellation_token(&token).into_dir(directory).start()?;
        let running = Mutex::new(Some(Running::Receiver(receiver)));
        let started = fontana_session { running, token, ticket: None, memory: None };
        // SAFETY: valid, by the contract of this function.
        unsafe { hand_over(started, session) }
    })
}

/// Starts a receiver of a session's only file into a buffer. Bytes are there as they arrive;
/// fontana_written is how many are verified, from the beginning. A file that is longer than the
/// buffer is an error.
///
/// # Safety
/// As of fontana_receive. `buffer` has room for `size` bytes, and is the session's until
/// fontana_free has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fontana_receive_into(
    ticket: *const c_char,
    buffer: *mut u8,
    size: usize,
    options: *const fontana_receive_options,
    session: *mut *mut fontana_session,
) -> i32 {
    code_of(|| {
        // SAFETY: null or valid, by the contract of this function.
        let staging = unsafe { options.as_ref().and_then(|options| path_from_c(options.staging)) };
        // SAFETY: texts, and null or valid options, by the contract of this function.
        let options = unsafe { receive_options(ticket, options)? };
        // SAFETY: the caller leaves it to the session until it is freed, which joins its threads.
        let memory = Arc::new(unsafe { GivenMemory::new(buffer, size) });
        let token = CancellationToken::new();
        let staging = staging.unwrap_or_else(staging_in_memory);
        let builder = options.builder()?.cancellation_token(&token);
        let receiver = builder.into_memory(Arc::clone(&memory), staging).start()?;
        let running = Mutex::new(Some(Running::Receiver(receiver)));
        let started = fontana_session { running, token, ticket: None, memory: Some(memory) };
        // SAFETY: valid, by the contract of this function.
        unsafe { hand_over(started, session) }
    })
}

/// The ticket of a sender, for receivers. Null for a receiver.
///
/// # Safety
/// `session` is valid. The text is valid until fontana_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fontana_ticket(session: *const fontana_session) -> *const c_char {
    // SAFETY: valid or null, by the contract of this function.
    let ticket = unsafe { session.as_ref() }.and_then(|session| session.ticket.as_ref());
    ticket.map_or(ptr::null(), |ticket| ticket.as_ptr())
}

/// Bytes that are in the buffer, from its beginning, all verified. 0 for other sessions.
///
/// # Safety
/// `session` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fontana_written(session: *const fontana_session) -> usize {
    // SAFETY: valid or null, by the contract of this function.
    let memory = unsafe { session.as_ref() }.and_then(|session| session.memory.as_ref());
    memory.map_or(0, |memory| memory.verified_prefix() as usize)
}

/// Gives the events of a session to `on_event`, on this thread, until the session has ended.
/// `on_event` may be null. Returns the code of its outcome: 0 if everything is complete and
/// verified. Otherwise fontana_error_text is the first error of a file that was given up, if there
/// was one. A session can be run once.
///
/// # Safety
/// `session` is valid. `on_event` may be called with `context`, and does not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fontana_run(
    session: *mut fontana_session,
    on_event: fontana_on_event,
    context: *mut c_void,
) -> i32 {
    code_of(|| {
        // SAFETY: valid or null, by the contract of this function.
        let session = unsafe { session.as_ref() };
        let session = session.ok_or_else(|| Failure::argument("session", "it is null"))?;
        let running = session.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let emit = |event: &Value| {
            if let Some(on_event) = on_event {
                let name = to_c(event["event"].as_str().unwrap_or_default());
                on_event(context, name.as_ptr(), to_c(&event.to_string()).as_ptr());
            }
        };
        let (outcome, failures) = match running {
            None => return Err(Failure::argument("session", "it was run before")),
            Some(Running::Sender(sender)) => {
                sender.events().for_each(|happened| emit(&event::of_sender(&happened)));
                let report = sender.join()?;
                emit(&event::sent(&report));
                (report.outcome, Failure::of_parts(&report.failures))
            }
            Some(Running::Receiver(receiver)) => {
                receiver.events().for_each(|happened| emit(&event::of_receiver(&happened)));
                let report = receiver.join()?;
                emit(&event::received(&report));
                (report.outcome, Failure::of_parts(&report.failures))
            }
        };
        match failures.into_iter().next() {
            Some(first) if outcome != Outcome::Complete => Err(Failure { outcome, ..first }),
            _ => Ok(i32::from(exit::code(outcome))),
        }
    })
}

/// Requests the end of a session, from any thread. What was received is saved.
///
/// # Safety
/// `session` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fontana_stop(session: *const fontana_session) {
    // SAFETY: valid or null, by the contract of this function.
    if let Some(session) = unsafe { session.as_ref() } {
        session.token.cancel();
    }
}

/// Stops a session, waits for its threads, and frees it. Null is nothing.
///
/// # Safety
/// `session` is null, or from fontana_send, fontana_receive or fontana_receive_into, is not freed
/// yet, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fontana_free(session: *mut fontana_session) {
    if session.is_null() {
        return;
    }
    // SAFETY: from `hand_over`, and freed once, by the contract of this function.
    let session = unsafe { Box::from_raw(session) };
    session.token.cancel();
    let running = session.running.lock().unwrap_or_else(PoisonError::into_inner).take();
    // An error of a session that the caller does not wait for.
    let _ = code_of(|| {
        match running {
            Some(Running::Sender(sender)) => drop(sender.join()?),
            Some(Running::Receiver(receiver)) => drop(receiver.join()?),
            None => {}
        }
        Ok(i32::from(exit::code(Outcome::Complete)))
    });
}

/// Gives a session to the caller.
///
/// # Safety
/// `place` is null, or a pointer may be written to it.
unsafe fn hand_over(
    session: fontana_session,
    place: *mut *mut fontana_session,
) -> Result<i32, Failure> {
    let session = Box::into_raw(Box::new(session));
    if place.is_null() {
        // Its threads end before the caller has its buffer back.
        // SAFETY: nothing else has it.
        unsafe { fontana_free(session) };
        return Err(Failure::argument("session", "it is null"));
    }
    // SAFETY: the caller's.
    unsafe { *place = session };
    Ok(i32::from(exit::code(Outcome::Complete)))
}

/// The options of a receiver.
///
/// # Safety
/// `ticket` is a text or null, `options` is null or valid; both stay so during `'a`.
unsafe fn receive_options<'a>(
    ticket: *const c_char,
    options: *const fontana_receive_options,
) -> Result<ReceiveOptions<'a>, Failure> {
    let milliseconds = |number: u64| (number > 0).then(|| Duration::from_millis(number));
    let mut found = ReceiveOptions {
        // SAFETY: the caller's.
        ticket: unsafe { from_c("ticket", ticket)? },
        ..Default::default()
    };
    // SAFETY: the caller's.
    if let Some(given) = unsafe { options.as_ref() } {
        // SAFETY: the texts of valid options are valid.
        unsafe {
            found.group = from_c("group", given.group)?;
            found.interface = from_c("interface_name", given.interface_name)?;
        }
        found.overwrite = given.overwrite;
        found.timeout = milliseconds(given.timeout_ms);
        found.silence = milliseconds(given.silence_ms);
        found.max_bytes = (given.max_bytes > 0).then_some(given.max_bytes);
    }
    Ok(found)
}
