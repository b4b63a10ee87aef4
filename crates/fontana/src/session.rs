//! A session on a thread of its own: its events, its end and its report.

use crate::cancellation::CancellationToken;
use crate::error::Error;
use fontana_net::thread::{PanicError, spawn};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Largest number of waiting events, besides those that the next ones replace. A session with more
/// events blocks.
/// Sessions of thousands of files have this many in a burst.
const CAPACITY: usize = 1024;

/// A session and its thread.
#[derive(Debug)]
pub(crate) struct Running<E, R> {
    queue: Arc<Queue<E>>,
    token: CancellationToken,
    thread: Option<JoinHandle<Result<R, Error>>>,
}

impl<E: Send + 'static, R: Send + 'static> Running<E, R> {
    /// Runs `work` on a thread called `name`. `work` must end soon after the token is cancelled.
    /// `replaces`: an event says again, and newer, what one that waits says.
    pub(crate) fn spawn(
        name: &str,
        token: CancellationToken,
        replaces: fn(&E, &E) -> bool,
        work: impl FnOnce(&CancellationToken, &mut dyn FnMut(E)) -> Result<R, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let queue = Arc::new(Queue::new(replaces));
        let (ended, cancelled) = (AtEnd(Arc::clone(&queue)), token.clone());
        let span = tracing::info_span!("session", kind = name);
        let work = move || {
            tracing::info!("started");
            let result = work(&cancelled, &mut |event| ended.0.push(event));
            match &result {
                Ok(_) => tracing::info!("ended"),
                Err(error) => tracing::error!(%error, "failed"),
            }
            result
        };
        // The thread and those that it starts are in the span.
        let thread = span.in_scope(|| spawn(name, work))?;
        Ok(Self { queue, token, thread: Some(thread) })
    }

    pub(crate) fn events(&self) -> Events<E> {
        Events { queue: Arc::clone(&self.queue) }
    }

    pub(crate) fn stop(&self) {
        self.token.cancel();
    }

    /// Waits for the end. Drops events that were not taken.
    pub(crate) fn join(mut self) -> Result<R, Error> {
        self.queue.close();
        let Some(thread) = self.thread.take() else {
            return Err(Error::system("join a session")(std::io::Error::other("it was joined")));
        };
        let name = thread.thread().name().unwrap_or_default().to_owned();
        thread.join().unwrap_or_else(|panic| Err(PanicError::new(&name, &*panic).into()))
    }
}

impl<E, R> Drop for Running<E, R> {
    fn drop(&mut self) {
        // After `join` it has ended.
        if self.thread.is_some() {
            self.token.cancel();
        }
        self.queue.close();
    }
}

/// Ends the events when the thread ends, also by a panic.
struct AtEnd<E>(Arc<Queue<E>>);

impl<E> Drop for AtEnd<E> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The events of a session, in order. The iterator blocks for the next one, and ends with the
/// session. Several iterators of one session share its events: each event goes to one of them.
///
/// Events wait until they are taken. An event about progress, a rate, or all receivers is replaced
/// by the next one, unless others came between; other events are never dropped. A session whose
/// events are not taken therefore blocks after a thousand of them, until they are taken or the
/// session is joined or dropped.
///
/// With the feature `futures` it is a `futures::Stream` as well.
#[derive(Debug)]
pub struct Events<E> {
    queue: Arc<Queue<E>>,
}

impl<E> Events<E> {
    /// The next event, if one is waiting.
    pub fn try_next(&mut self) -> Option<E> {
        let mut waiting = self.queue.lock();
        let event = waiting.take();
        self.queue.has_room.notify_one();
        event
    }

    /// Waits until an event is waiting or the session has ended, for at most this long. Returns
    /// whether that is so: the iterator does not block then, if it is the only one.
    pub fn wait(&self, at_most: Duration) -> bool {
        let waiting = self.queue.lock();
        let is_waiting = |waiting: &mut Waiting<E>| waiting.events.is_empty() && !waiting.ended;
        let has_event = &self.queue.has_event;
        let result = has_event.wait_timeout_while(waiting, at_most, is_waiting);
        let (waiting, _) = result.unwrap_or_else(PoisonError::into_inner);
        !waiting.events.is_empty() || waiting.ended
    }
}

impl<E> Iterator for Events<E> {
    type Item = E;

    fn next(&mut self) -> Option<E> {
        let mut waiting = self.queue.lock();
        loop {
            if let Some(event) = waiting.take() {
                self.queue.has_room.notify_one();
                return Some(event);
            }
            if waiting.ended {
                return None;
            }
            waiting = self.queue.has_event.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(feature = "futures")]
impl<E> futures_core::Stream for Events<E> {
    type Item = E;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<E>> {
        let mut waiting = self.queue.lock();
        if let Some(event) = waiting.take() {
            self.queue.has_room.notify_one();
            return std::task::Poll::Ready(Some(event));
        }
        if waiting.ended {
            return std::task::Poll::Ready(None);
        }
        if !waiting.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.wakers.push(context.waker().clone());
        }
        std::task::Poll::Pending
    }
}

#[derive(Debug)]
struct Queue<E> {
    replaces: fn(&E, &E) -> bool,
    waiting: Mutex<Waiting<E>>,
    has_event: Condvar,
    has_room: Condvar,
}

#[derive(Debug)]
struct Waiting<E> {
    events: VecDeque<E>,
    /// The session has ended.
    ended: bool,
    /// The application takes no more events.
    closed: bool,
    #[cfg(feature = "futures")]
    wakers: Vec<std::task::Waker>,
}

impl<E> Waiting<E> {
    fn take(&mut self) -> Option<E> {
        self.events.pop_front()
    }

    fn wake(&mut self) {
        #[cfg(feature = "futures")]
        self.wakers.drain(..).for_each(std::task::Waker::wake);
    }
}

impl<E> Queue<E> {
    fn new(replaces: fn(&E, &E) -> bool) -> Self {
        let waiting = Waiting {
            events: VecDeque::new(),
            ended: false,
            closed: false,
            #[cfg(feature = "futures")]
            wakers: Vec::new(),
        };
        Self {
            replaces,
            waiting: Mutex::new(waiting),
            has_event: Condvar::new(),
            has_room: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<E>> {
        // No code under the lock can panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: E) {
        let mut waiting = self.lock();
        let is_state = |event: &E| (self.replaces)(event, event);
        if is_state(&event) {
            // What came before another event belongs to it, as the end of a version does.
            let after = waiting.events.iter().rposition(|other| !is_state(other));
            let from = after.map_or(0, |at| at + 1);
            let mut states = waiting.events.iter().skip(from);
            if let Some(at) = states.position(|other| (self.replaces)(&event, other)) {
                waiting.events.remove(from + at);
            }
        } else {
            while waiting.events.len() > CAPACITY && !waiting.closed {
                waiting = self.has_room.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
        }
        if waiting.closed {
            return;
        }
        waiting.events.push_back(event);
        waiting.wake();
        self.has_event.notify_one();
    }

    fn end(&self) {
        let mut waiting = self.lock();
        waiting.ended = true;
        waiting.wake();
        self.has_event.notify_all();
    }

    fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.events.clear();
        self.has_room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Negative events are replaced, odd ones by odd ones.
    fn running(
        work: impl FnOnce(&CancellationToken, &mut dyn FnMut(i32)) -> Result<u32, Error>
        + Send
        + 'static,
    ) -> Running<i32, u32> {
        let replaces =
            |event: &i32, other: &i32| *event < 0 && *other < 0 && event % 2 == other % 2;
        Running::spawn("test", CancellationToken::new(), replaces, work).unwrap()
    }

    #[test]
    fn progress_is_replaced_and_other_events_are_not() {
        let (told, wait) = channel();
        let session = running(move |_, emit| {
            for event in [1, -1, 2, -2, -3, 3, -4, -6] {
                emit(event);
            }
            told.send(()).unwrap();
            Ok(7)
        });
        wait.recv().unwrap();
        assert_eq!(session.events().collect::<Vec<_>>(), [1, -1, 2, -2, -3, 3, -6]);
        assert_eq!(session.join().unwrap(), 7);
    }

    #[test]
    fn a_wait_ends_with_an_event_or_with_the_session() {
        let (go, gone) = channel::<()>();
        let session = running(move |_, emit| {
            gone.recv().unwrap();
            emit(1);
            gone.recv().unwrap_err();
            Ok(0)
        });
        let mut events = session.events();
        assert!(!events.wait(Duration::ZERO));
        go.send(()).unwrap();
        assert!(events.wait(Duration::MAX));
        assert_eq!(events.next(), Some(1));
        assert!(!events.wait(Duration::from_millis(1)));
        drop(go);
        assert!(events.wait(Duration::MAX));
        assert_eq!(events.next(), None);
    }

    #[test]
    fn a_full_queue_waits_and_joining_frees_it() {
        let many = 10 * CAPACITY as i32;
        let session = running(move |_, emit| {
            (0..many).for_each(emit);
            Ok(0)
        });
        assert!(session.events().eq(0..many));
        session.join().unwrap();
        // No events are taken.
        let session = running(move |_, emit| {
            (0..many).for_each(emit);
            Ok(1)
        });
        assert_eq!(session.join().unwrap(), 1);
    }

    #[test]
    fn a_panic_ends_the_events_and_is_an_error() {
        let session = running(|_, emit| {
            emit(1);
            std::panic::resume_unwind(Box::new("a defect"))
        });
        assert_eq!(session.events().collect::<Vec<_>>(), [1]);
        let error = session.join().unwrap_err();
        assert_eq!(error.to_string(), "thread \"test\" panicked: a defect");
        assert_eq!(error.outcome(), crate::outcome::Outcome::InternalError);
    }

    #[test]
    fn a_session_ends_when_it_is_stopped_or_dropped() {
        let endless = |told: std::sync::mpsc::Sender<()>| {
            running(move |cancelled, _| {
                while !cancelled.is_cancelled() {
                    std::thread::yield_now();
                }
                told.send(()).unwrap();
                Ok(2)
            })
        };
        let (told, ended) = channel();
        let session = endless(told.clone());
        session.stop();
        assert_eq!(session.events().next(), None);
        assert_eq!(session.join().unwrap(), 2);
        ended.recv().unwrap();
        drop(endless(told));
        ended.recv().unwrap();
    }
}
