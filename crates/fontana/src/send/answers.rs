//! The return path of a sender: a thread reads the answers of receivers and opens them with the
//! session's keys, and the pacing thread's endpoint decides about them.

use super::crowd::CrowdWatch;
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::SendEvent;
use crate::rate::Rate;
use crate::reporting::Crowd;
use crate::seal::{GroupKey, InstanceCipher};
use crate::system;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use fontana_net::thread::spawn_scoped;
use fontana_net::{Bell, CollectorSocket};
use fontana_proto::report::{Authentic, Signers};
use fontana_proto::{
    Collection, Datagram, DatagramBatch, Ecn, Instant, Port, SendDone, SendJob, SenderEvent,
};
use fontana_wire::{FeedbackDatagram, SealId, SecretKey};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Scope;
use std::time::Duration;

/// Longest wait for an answer: when the end of the session is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// Answers that wait for the pacing thread: more than arrive in a second.
const MAX_WAITING: usize = 512;
/// Answers that it takes at a time, at most.
const TAKEN_AT_ONCE: usize = 32;

/// What is needed to hear receivers.
pub(super) struct ReturnPath {
    pub(super) socket: Arc<CollectorSocket>,
    /// Of the run.
    pub(super) id: SealId,
    pub(super) group_key: Option<GroupKey>,
    pub(super) signer: SecretKey,
    /// A group key or signatures authenticate the answers.
    pub(super) is_authenticated: bool,
}

/// An answer that was opened.
pub(super) struct Answer {
    from: SocketAddr,
    datagram: Vec<u8>,
    authentic: Box<Authentic>,
}

/// Reads and opens answers.
struct Reader {
    socket: Arc<CollectorSocket>,
    id: SealId,
    group_key: Option<GroupKey>,
    signers: Arc<Signers>,
    queue: Sender<Answer>,
    /// Datagrams that were no answers, or found the queue full.
    refused: Arc<AtomicU64>,
    /// Wakes the pacing thread.
    bell: Bell,
    stop: CancellationToken,
}

impl ReturnPath {
    /// Starts the thread that reads. It ends with the thread that takes the answers.
    pub(super) fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        collection: &Collection,
        bell: Bell,
    ) -> Result<Answers, Error> {
        let signers = Arc::clone(collection.signers());
        let (queue, answers) = bounded(MAX_WAITING);
        let stop = CancellationToken::new();
        let Self { socket, id, group_key, signer, is_authenticated } = self;
        let (refused, reads) = (Arc::<AtomicU64>::default(), stop.clone());
        let crowd = CrowdWatch::new(is_authenticated);
        let answers = Answers { answers, reads, signer, refused: Arc::clone(&refused), crowd };
        let reader = Reader { socket, id, group_key, signers, queue, refused, bell, stop };
        spawn_scoped(scope, "reports", move || reader.run())?;
        Ok(answers)
    }
}

impl Reader {
    /// Reads until it is stopped, or no thread takes answers any more.
    fn run(self) {
        let mut buffer = vec![0; FeedbackDatagram::MAX_SIZE + 1];
        while !self.stop.is_cancelled() {
            let (length, from) = match self.socket.receive(LONGEST_WAIT, &mut buffer) {
                Ok(Some(received)) => received,
                Ok(None) => continue,
                // Only a defect of the system ends a socket that is bound.
                Err(error) => {
                    tracing::warn!(%error, "no more reports are received");
                    std::thread::sleep(LONGEST_WAIT);
                    continue;
                }
            };
            let datagram = buffer.get(..length).unwrap_or_default();
            // Before anything that costs more.
            let parsed = FeedbackDatagram::parse(datagram).ok();
            let is_ours = parsed.is_some_and(|it| it.header.instance == self.id);
            let open = || {
                Authentic::open(datagram, from, &self.signers, |id, receiver| {
                    let key = self.group_key.as_ref();
                    key.map(|key| InstanceCipher::of_reports(key, id, receiver))
                })
            };
            let Some(authentic) = is_ours.then(open).flatten() else {
                self.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let (from, datagram) = (SocketAddr::new(from, 0), datagram.to_vec());
            let answer = Answer { from, datagram, authentic: Box::new(authentic) };
            match self.queue.try_send(answer) {
                Ok(()) => self.bell.ring(),
                Err(TrySendError::Full(_)) => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                }
                Err(TrySendError::Disconnected(_)) => return,
            }
        }
    }
}

/// The pacing thread's end of the return path.
pub(super) struct Answers {
    answers: Receiver<Answer>,
    /// Ends the thread that reads.
    reads: CancellationToken,
    signer: SecretKey,
    refused: Arc<AtomicU64>,
    crowd: CrowdWatch,
}

impl Drop for Answers {
    /// Ends the thread that reads also where an error has ended the session.
    fn drop(&mut self) {
        self.reads.cancel();
    }
}

impl Answers {
    /// The answers that have arrived.
    pub(super) fn take(&self) -> Vec<Answer> {
        self.answers.try_iter().take(TAKEN_AT_ONCE).collect()
    }

    /// Emits the state of the receivers, if that is due.
    pub(super) fn show(
        &mut self,
        now: Instant,
        collection: &mut Collection,
        emit: &mut dyn FnMut(SendEvent),
    ) {
        collection.collector_mut().ignore_many(self.refused.swap(0, Ordering::Relaxed));
        self.crowd.poll(now, collection.collector_mut()).into_iter().for_each(emit);
    }

    /// Ends the thread that reads, and emits what receivers have reported until now. Returns the
    /// state of all.
    pub(super) fn end(
        &mut self,
        now: Instant,
        collection: &mut Collection,
        emit: &mut dyn FnMut(SendEvent),
    ) -> Arc<Crowd> {
        self.reads.cancel();
        collection.collector_mut().ignore_many(self.refused.swap(0, Ordering::Relaxed));
        while let Some(status) = collection.collector_mut().poll_news(now) {
            emit(SendEvent::Report(Box::new(status)));
        }
        let crowd = self.crowd.whole(collection.collector());
        emit(SendEvent::Crowd(Arc::clone(&crowd)));
        crowd
    }
}

impl Answer {
    /// Passes it to the endpoint as a datagram; its opened form waits for the job.
    pub(super) fn give(self, keys: &mut Keys, handle: impl FnOnce(&DatagramBatch<'_>)) {
        let Self { from, datagram, authentic } = self;
        keys.opened = Some(authentic);
        let received = Datagram {
            from,
            port: Port::Feedback,
            ecn: Ecn::NotEct,
            dropped_before: 0,
            payload: 0..datagram.len() as u32,
        };
        handle(&DatagramBatch::one(&datagram, &received));
    }
}

/// Answers the jobs of an endpoint that need keys.
#[derive(Default)]
pub(super) struct Keys {
    signer: Option<SecretKey>,
    /// The answer that the endpoint looks at.
    opened: Option<Box<Authentic>>,
}

impl Keys {
    pub(super) fn new(answers: Option<&Answers>) -> Self {
        Self { signer: answers.map(|answers| answers.signer.clone()), opened: None }
    }

    /// The answer to a job, if it needs keys.
    pub(super) fn run(&mut self, job: SendJob) -> Option<SendDone> {
        match job {
            SendJob::Sign(mut call) => {
                call.issued_unix_ms = system::unix_ms();
                self.signer.as_ref().map(|signer| SendDone::Signed(call.emit(signer)))
            }
            SendJob::Open { .. } => Some(SendDone::Opened(self.opened.take())),
            SendJob::Prepare { .. } | SendJob::Release { .. } | SendJob::ExpectRepair => None,
        }
    }
}

/// The event of the library for an event of the endpoint, if it has one.
pub(super) fn shown(event: SenderEvent) -> Option<SendEvent> {
    match event {
        SenderEvent::Report(status) => Some(SendEvent::Report(status)),
        SenderEvent::Slow(slow) => {
            let rate = Rate::bytes_per_second(slow.bytes_per_second);
            Some(SendEvent::Slow { receiver: slow.receiver, rate })
        }
        SenderEvent::RateChanged(rate) => {
            Some(SendEvent::RateChanged { rate: Rate::bytes_per_second(rate) })
        }
        SenderEvent::Awaited(awaited) => Some(SendEvent::Awaited(awaited)),
        SenderEvent::Resting(rests) => Some(SendEvent::Resting(rests)),
        SenderEvent::Finished | SenderEvent::Withdrawn { .. } | SenderEvent::Over => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_reads_ends_also_where_the_session_has_failed() {
        let stop = CancellationToken::new();
        let (_queue, answers) = bounded(1);
        let answers = Answers {
            answers,
            reads: stop.clone(),
            signer: SecretKey::from_seed(&[1; 32]),
            refused: Arc::default(),
            crowd: CrowdWatch::new(true),
        };
        assert!(!stop.is_cancelled());
        drop(answers);
        assert!(stop.is_cancelled());
    }
}
