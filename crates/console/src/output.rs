//! Standard output or standard error.
//!
//! The calling thread writes each line until a session begins. Then a thread of its own does, so
//! that a reader that takes nothing stops neither data nor the end of the session.

use fontana::CancellationToken;
use fontana::net::ThreadError;
use fontana::net::thread::spawn;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Largest number of bytes of events that wait for a reader: a thousand of them and more.
const MAX_EVENTS: usize = 1 << 20;
/// Largest number of bytes of all lines that wait. Results are few: a session that lasts for days,
/// with a version a second, has this many.
const MAX_LINES: usize = 16 << 20;
/// Time that the end waits for a reader that takes nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that the end waits for a reader that takes little.
const LONG_PATIENCE: Duration = Duration::from_secs(30);
/// Time that a line for people waits to be written, so that lines of standard output and standard
/// error keep their order in one file. A reader that takes nothing delays one line.
const ORDERED_WITHIN: Duration = Duration::from_millis(20);
/// Time until the next attempt, if another process has made the stream non-blocking and it is full.
const RETRY: Duration = Duration::from_millis(10);

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is dropped, and counted, if too many wait.
    Event,
    /// A part of what the user asked for: it is lost only with an error.
    Result,
}

/// How a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All results were written.
    Written,
    /// Its reader has closed it before it had all results.
    Closed,
    /// Results were not written.
    Failed,
}

/// Writes some bytes, and returns how many.
pub(crate) type Write = dyn Fn(&[u8]) -> io::Result<usize> + Send + Sync;

/// A stream of lines.
pub(crate) struct Output {
    shared: Arc<Shared>,
}

struct Shared {
    write: Box<Write>,
    /// The line that says how many events were dropped.
    dropped: fn(u64) -> String,
    /// Cancelled when the reader closes the stream, if that ends the session.
    stop: Option<CancellationToken>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// A thread writes the lines.
    is_aside: bool,
    /// The first line is being written.
    waiting: VecDeque<(String, Line)>,
    bytes: usize,
    /// Events that were dropped since the last line about it.
    dropped: u64,
    /// The reader delays lines.
    is_stalled: bool,
    /// The last line was written in part.
    is_torn: bool,
    is_closed: bool,
    lost_results: bool,
    /// An error that was not reported yet.
    error: Option<io::Error>,
    has_failed: bool,
    /// When a line was written last.
    progress: Option<Instant>,
}

impl Output {
    pub(crate) fn new(
        write: Box<Write>,
        dropped: fn(u64) -> String,
        stop: Option<CancellationToken>,
    ) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { shared: Arc::new(Shared { write, dropped, stop, state, changed }) }
    }

    /// Lets a thread write all lines from now on.
    pub(crate) fn write_aside(&self, thread: &str) -> Result<(), ThreadError> {
        let mut state = self.shared.lock();
        if !state.is_aside {
            let shared = Arc::clone(&self.shared);
            // The thread ends with the process.
            drop(spawn(thread, move || shared.write_lines())?);
            state.is_aside = true;
        }
        Ok(())
    }

    /// Writes a line, or leaves it to the thread.
    pub(crate) fn line(&self, text: String, line: Line) {
        let mut state = self.shared.lock();
        if state.is_closed {
            state.lost_results |= line == Line::Result;
            return;
        }
        let news = (state.dropped > 0).then(|| (self.shared.dropped)(state.dropped));
        if !state.is_aside {
            return self.shared.write_now(state, news, (&text, line));
        }
        let limit = if line == Line::Event { MAX_EVENTS } else { MAX_LINES };
        let news_bytes = news.as_ref().map_or(0, String::len);
        if state.bytes.saturating_add(text.len()).saturating_add(news_bytes) > limit {
            match line {
                Line::Event => state.dropped += 1,
                Line::Result => state.lost_results = true,
            }
            return;
        }
        if let Some(news) = news {
            state.dropped = 0;
            state.push(news, Line::Event);
        }
        state.push(text, line);
        self.shared.changed.notify_all();
    }

    /// Waits until all lines are written, unless the reader delays them.
    pub(crate) fn keep_order(&self) {
        let until = Instant::now() + ORDERED_WITHIN;
        let mut state = self.shared.lock();
        while state.is_aside && !state.waiting.is_empty() && !state.is_stalled {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.is_stalled = true;
                return;
            }
            state = self.shared.wait(state, left);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.lock().is_closed
    }

    /// Whether a write has failed, and not because its reader has closed the stream.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.lock().has_failed
    }

    /// The first error of a write, once.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        self.shared.lock().error.take()
    }

    /// Waits until all lines are written, at most for the reader's time.
    pub(crate) fn finish(&self) -> Ended {
        let begin = Instant::now();
        let mut state = self.shared.lock();
        if state.dropped > 0 && state.is_aside && !state.is_closed {
            let news = (self.shared.dropped)(std::mem::take(&mut state.dropped));
            state.push(news, Line::Event);
            self.shared.changed.notify_all();
        }
        while !state.waiting.is_empty() {
            let last = state.progress.unwrap_or(begin).max(begin);
            let until = (last + PATIENCE).min(begin + LONG_PATIENCE);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.lost_results |= state.waiting.iter().any(|(_, line)| *line == Line::Result);
                break;
            }
            state = self.shared.wait(state, left);
        }
        match state.lost_results {
            false => Ended::Written,
            true if state.is_closed => Ended::Closed,
            true => Ended::Failed,
        }
    }
}

impl State {
    fn push(&mut self, text: String, line: Line) {
        self.bytes = self.bytes.saturating_add(text.len());
        self.waiting.push_back((text, line));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code under the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>, time: Duration) -> MutexGuard<'s, State> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// The thread that writes.
    fn write_lines(&self) {
        let mut state = self.lock();
        loop {
            let Some((text, line)) = state.waiting.front_mut() else {
                state.is_stalled = false;
                self.changed.notify_all();
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            // It stays in the queue: what waits is what is not written.
            let (text, line, is_torn) = (std::mem::take(text), *line, state.is_torn);
            drop(state);
            let result = self.write_all(&text, is_torn);
            state = self.lock();
            self.note(&mut state, result, line);
            state.bytes = state.bytes.saturating_sub(text.len());
            state.waiting.pop_front();
            if state.is_closed {
                let results = state.waiting.iter().any(|(_, line)| *line == Line::Result);
                state.lost_results |= results;
                state.waiting.clear();
                state.bytes = 0;
            }
            self.changed.notify_all();
        }
    }

    /// Writes a line on the calling thread, and before it the news that others were dropped.
    fn write_now(
        &self,
        mut state: MutexGuard<'_, State>,
        news: Option<String>,
        (text, line): (&str, Line),
    ) {
        if let Some(news) = news
            && self.write_all(&news, state.is_torn).is_ok()
        {
            (state.dropped, state.is_torn) = (0, false);
        }
        let result = self.write_all(text, state.is_torn);
        self.note(&mut state, result, line);
    }

    fn note(&self, state: &mut State, result: Result<(), Unwritten>, line: Line) {
        state.progress = Some(Instant::now());
        let Err(Unwritten { error, is_torn }) = result else {
            state.is_torn = false;
            return;
        };
        state.is_torn = is_torn;
        match line {
            Line::Event => state.dropped += 1,
            Line::Result => state.lost_results = true,
        }
        if error.kind() == io::ErrorKind::BrokenPipe {
            state.is_closed = true;
            self.stop.iter().for_each(CancellationToken::cancel);
        } else if !std::mem::replace(&mut state.has_failed, true) {
            state.error = Some(error);
        }
    }

    /// Writes a line. `is_torn`: the line before was written in part.
    fn write_all(&self, text: &str, is_torn: bool) -> Result<(), Unwritten> {
        let mut is_torn = is_torn;
        let parts = [if is_torn { "\n" } else { "" }, text];
        for part in parts.map(str::as_bytes) {
            let mut rest = part;
            while !rest.is_empty() {
                let error = match (self.write)(rest) {
                    Ok(0) => io::ErrorKind::WriteZero.into(),
                    Ok(count) => {
                        rest = rest.get(count..).unwrap_or_default();
                        is_torn = !rest.is_empty();
                        continue;
                    }
                    Err(error) => error,
                };
                match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => std::thread::sleep(RETRY),
                    _ => return Err(Unwritten { error, is_torn }),
                }
            }
        }
        Ok(())
    }
}

/// A line that was not written.
struct Unwritten {
    error: io::Error,
    /// A part of a line was.
    is_torn: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn dropped(count: u64) -> String {
        format!("dropped {count}\n")
    }

    /// An output whose writes `write` decides on, and what was written.
    fn output(
        write: impl Fn(&[u8], &mut Vec<u8>) -> io::Result<usize> + Send + Sync + 'static,
    ) -> (Output, Arc<Mutex<Vec<u8>>>) {
        let written = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&written);
        let write = move |bytes: &[u8]| write(bytes, &mut all.lock().unwrap());
        (Output::new(Box::new(write), dropped, None), written)
    }

    fn text(written: &Mutex<Vec<u8>>) -> String {
        String::from_utf8(written.lock().unwrap().clone()).unwrap()
    }

    fn take(bytes: &[u8], all: &mut Vec<u8>) -> io::Result<usize> {
        all.extend(bytes);
        Ok(bytes.len())
    }

    #[test]
    fn results_that_a_full_disk_refuses_are_an_error_and_events_are_counted() {
        for aside in [false, true] {
            let room = Mutex::new(0_usize);
            let room = Arc::new(room);
            let left = Arc::clone(&room);
            let (output, written) = output(move |bytes, all| {
                let mut left = left.lock().unwrap();
                let count = bytes.len().min(*left);
                *left -= count;
                all.extend(&bytes[..count]);
                if count == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(count) }
            });
            if aside {
                output.write_aside("test").unwrap();
            }
            let line = |text: &str, line| {
                output.line(text.to_owned(), line);
                output.keep_order();
            };
            *room.lock().unwrap() = 6;
            line("one\n", Line::Event);
            line("two\n", Line::Event);
            assert_eq!(text(&written), "one\ntw");
            assert_eq!(output.take_error().unwrap().kind(), io::ErrorKind::StorageFull);
            *room.lock().unwrap() = 1000;
            line("three\n", Line::Result);
            assert_eq!(output.finish(), Ended::Written);
            assert!(text(&written).starts_with("one\ntw\n"), "{}", text(&written));
            assert!(text(&written).contains("\nthree\n"), "{}", text(&written));
            assert!(text(&written).contains("\ndropped 1\n"), "{}", text(&written));
            *room.lock().unwrap() = 0;
            line("four\n", Line::Result);
            assert_eq!(output.finish(), Ended::Failed);
        }
    }

    #[test]
    fn a_reader_that_takes_nothing_stops_no_one_and_loses_events_with_their_number() {
        let (go, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let (output, written) = output(move |bytes, all| {
            // An error when the test has dropped its end: from then on all is written.
            let _ = wait.lock().unwrap().recv();
            take(bytes, all)
        });
        output.write_aside("test").unwrap();
        let line = "x".repeat(1023) + "\n";
        for _ in 0..2000 {
            output.line(line.clone(), Line::Event);
        }
        output.line("result\n".to_owned(), Line::Result);
        assert!(output.shared.lock().bytes <= MAX_EVENTS + 100);
        drop(go);
        assert_eq!(output.finish(), Ended::Written);
        let text = text(&written);
        assert_eq!(text.matches("xx\n").count(), 1024);
        assert!(text.ends_with("xx\ndropped 976\nresult\n"), "{:?}", &text[text.len() - 40..]);
    }

    #[test]
    fn results_that_no_reader_takes_are_an_error_within_seconds() {
        let (go, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let (output, _) = output(move |bytes, all| {
            let _ = wait.lock().unwrap().recv();
            take(bytes, all)
        });
        output.write_aside("test").unwrap();
        output.line("event\n".to_owned(), Line::Event);
        output.line("result\n".to_owned(), Line::Result);
        assert_eq!(output.finish(), Ended::Failed);
        drop(go);
    }

    #[test]
    fn a_reader_that_closes_ends_the_session_and_loses_results_as_an_interruption() {
        let stop = CancellationToken::new();
        let write = |_: &[u8]| Err(io::ErrorKind::BrokenPipe.into());
        let output = Output::new(Box::new(write), dropped, Some(stop.clone()));
        output.line("event\n".to_owned(), Line::Event);
        assert!(stop.is_cancelled() && output.is_closed());
        assert_eq!(output.finish(), Ended::Written);
        output.line("result\n".to_owned(), Line::Result);
        assert_eq!(output.finish(), Ended::Closed);
    }

    #[test]
    fn a_stream_that_another_process_has_made_non_blocking_loses_nothing() {
        let attempts = Mutex::new(0);
        let (output, written) = output(move |bytes, all| {
            let mut attempts = attempts.lock().unwrap();
            *attempts += 1;
            match *attempts % 3 {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                1 => Err(io::ErrorKind::Interrupted.into()),
                _ => take(&bytes[..1], all),
            }
        });
        output.line("line\n".to_owned(), Line::Result);
        assert_eq!((output.finish(), text(&written).as_str()), (Ended::Written, "line\n"));
    }
}
