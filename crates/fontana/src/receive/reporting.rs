//! The reports of a receiver: roll calls among the received datagrams are checked, and answered
//! when it is this receiver's turn.

use super::options::ReceiveOptions;
use crate::error::{Error, SetupError};
use crate::event::ReceiveProgress;
use crate::reporting::Reporting;
use crate::seal::{GroupKey, InstanceCipher};
use crate::system;
use fontana_fec::EncodingId;
use fontana_proto::report::{
    AnswerContent, DueAnswer, PacketCounts, RateSample, Reporter, RollCallGate, RollCallRefusal,
};
use fontana_proto::{DatagramBatch, Instant, Lacking, ReceiverStats};
use fontana_wire::{
    Feedback, Packet, RateReport, ReceiverId, ReceiverReport, ReceiverState, RepairRequest,
    RollCall, Toi,
};
use std::net::SocketAddr;
use std::time::Duration;

/// Longest wait of a receiver that has ended for its first roll call: six of them.
const FIRST_CALL: Duration = Duration::from_secs(3);
/// Longest wait for another roll call after the last one: the sender has ended.
const NEXT_CALL: Duration = Duration::from_secs(5);
/// Longest wait until the collector knows the final state: 100 000 receivers take eight minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// What a receiver reports, and when.
pub(super) struct ReportStage {
    options: Reporting,
    group_key: Option<GroupKey>,
    gate: RollCallGate,
    reporter: Reporter,
    receiver: ReceiverId,
    started_unix_ms: u64,
    state: ReceiverState,
    /// When the final state was set.
    ended_at: Option<Duration>,
    /// When the last roll call arrived that was obeyed.
    called_at: Option<Duration>,
    /// The collector that was reported to last.
    clocks_differ: Option<Duration>,
    told: Option<SocketAddr>,
    sent: u64,
}

impl ReportStage {
    /// `None` if the options do not allow reports.
    pub(super) fn new(options: &ReceiveOptions) -> Result<Option<Self>, Error> {
        let Some(reporting) = &options.reporting else { return Ok(None) };
        let needs = |needs| SetupError::Reports { needs };
        let publisher = options
            .expectation
            .publisher
            .ok_or_else(|| needs("the publisher's key, which signs what asks for them"))?;
        let tsi = options.expectation.tsi.ok_or_else(|| needs("a session number"))?;
        let receiver = ReceiverId(system::random_bytes()?);
        let reporter = Reporter::new(
            receiver,
            reporting.label.clone(),
            reporting.max_per_second,
            system::random_u64()?,
        );
        let reporter = match reporting.reports_rate {
            true => reporter.with_rate_reports(),
            false => reporter,
        };
        Ok(Some(Self {
            options: Reporting::clone(reporting),
            group_key: options.group_key.clone(),
            gate: RollCallGate::new(publisher, tsi),
            reporter,
            receiver,
            started_unix_ms: system::unix_ms(),
            state: ReceiverState::Receiving,
            ended_at: None,
            called_at: None,
            told: None,
            clocks_differ: None,
            sent: 0,
        }))
    }

    /// Looks for roll calls among the datagrams of a batch, which the receiver has handled. With a
    /// group key, these were opened. `counts`: what has arrived until now. `lacking`: what it
    /// lacks, of so many blocks.
    pub(super) fn take(
        &mut self,
        now: Instant,
        batch: &DatagramBatch<'_>,
        counts: impl Fn() -> PacketCounts,
        lacking: impl Fn(usize) -> Lacking,
    ) {
        for (_, payload) in batch.iter().filter(|(_, payload)| RollCall::may_be(payload)) {
            let Some(symbol) = symbol_of(payload) else { continue };
            let unix_ms = Some(system::unix_ms()).filter(|&ms| ms >= system::WRITTEN_UNIX_MS);
            match self.gate.check(now, unix_ms, symbol) {
                Ok(call) => {
                    self.called_at = Some(Duration::from_nanos(now.as_nanos()));
                    self.reporter.set_counts(counts());
                    self.reporter.handle_roll_call(now, &call, &lacking);
                }
                Err(RollCallRefusal::ClocksDiffer { seconds }) => {
                    self.clocks_differ = Some(Duration::from_secs(seconds));
                }
                // Each roll call may arrive twice, from a mirror of the network.
                Err(RollCallRefusal::Replayed) => {}
                Err(refusal) => tracing::debug!(%refusal, "a roll call asks for nothing"),
            }
        }
    }

    /// How far this host's clock is from the publisher's, if that is why no report is sent. Once.
    pub(super) fn take_clocks_differ(&mut self) -> Option<Duration> {
        self.clocks_differ.take()
    }

    /// Sets the state that the receiver ends with.
    pub(super) fn set_final(&mut self, state: ReceiverState, elapsed: Duration) {
        if self.ended_at.is_none() {
            (self.state, self.ended_at) = (state, Some(elapsed));
            self.reporter.set_final();
        }
    }

    /// True while the collector should still be told of the final state.
    pub(super) fn waits(&self, elapsed: Duration) -> bool {
        let Some(ended_at) = self.ended_at else { return false };
        let until = match self.called_at {
            None => ended_at + FIRST_CALL,
            Some(called_at) => called_at.max(ended_at) + NEXT_CALL,
        };
        !self.reporter.is_known() && elapsed < until.min(ended_at + LONGEST_WAIT)
    }

    /// Whether a sender that has asked knows the final state.
    pub(super) fn is_known_to_sender(&self) -> Option<bool> {
        self.called_at.map(|_| self.reporter.is_known())
    }

    /// When a report or a request is due; `None` if none is.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.reporter.poll_timeout()
    }

    /// Sends the report or the request that is due, if one is. Returns the collector, if it was not
    /// reported to before.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        progress: impl FnOnce() -> ReceiveProgress,
    ) -> Option<SocketAddr> {
        self.reporter.poll_timeout().filter(|&due| due <= now)?;
        let progress = progress();
        self.reporter.set_counts(counts_of(&progress.stats));
        let due = self.reporter.poll(now)?;
        let to = due.to;
        let datagram = self.datagram(due, &progress);
        match self.options.socket.send(&datagram, to) {
            Ok(()) => self.sent += 1,
            // The next round repeats it.
            Err(error) => tracing::debug!(%error, %to, "a report was not sent"),
        }
        (self.told.replace(to) != Some(to)).then_some(to)
    }

    fn datagram(&self, due: DueAnswer, progress: &ReceiveProgress) -> Vec<u8> {
        let loss_ppm = (progress.loss().unwrap_or(0.0).clamp(0.0, 1.0) * 1e6) as u32;
        let DueAnswer { instance, counter, echo, content, .. } = due;
        let feedback = match content {
            AnswerContent::Report { round } => {
                let (wanted, lacking) = (progress.source_symbols, progress.symbols_wanted);
                let permille = match self.state {
                    ReceiverState::Complete { .. } => 1000,
                    _ if wanted == 0 => 0,
                    _ => wanted.saturating_sub(lacking) * 1000 / wanted,
                };
                Feedback::Report(ReceiverReport {
                    receiver: self.receiver,
                    label: self.options.label.clone(),
                    started_unix_ms: self.started_unix_ms,
                    round,
                    echo,
                    state: self.state,
                    permille: permille.min(1000) as u16,
                    symbols_lacking: lacking,
                    loss_ppm,
                    kernel_drops: progress.kernel_drops,
                    channels: progress.channels,
                    seconds: u32::try_from(progress.elapsed.as_secs()).unwrap_or(u32::MAX),
                })
            }
            AnswerContent::Rate(RateSample { round, window, packets, weight }) => {
                let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
                Feedback::Rate(RateReport {
                    receiver: self.receiver,
                    round,
                    echo,
                    window_us: u32::try_from(window.as_micros()).unwrap_or(u32::MAX).max(1),
                    received: count(packets.received),
                    lost: count(packets.lost),
                    weight,
                })
            }
            AnswerContent::Request { round, lacking, mute_us } => {
                Feedback::Request(RepairRequest {
                    receiver: self.receiver,
                    round,
                    echo,
                    loss_ppm,
                    mute_us,
                    may_lack_more: lacking.may_lack_more,
                    blocks: lacking.blocks,
                    maps: lacking.maps,
                })
            }
        };
        let key = self.group_key.as_ref();
        let cipher = key.map(|key| InstanceCipher::of_reports(key, instance, self.receiver));
        feedback.emit(instance, counter, self.options.identity.as_ref(), cipher.as_ref())
    }
}

/// The packets of the session that have arrived, and those that were lost.
pub(super) fn counts_of(stats: &ReceiverStats) -> PacketCounts {
    PacketCounts { received: stats.expected.saturating_sub(stats.lost), lost: stats.lost }
}

/// The symbol of a packet with a roll call.
fn symbol_of(datagram: &[u8]) -> Option<&[u8]> {
    let packet = Packet::parse(datagram).ok()?;
    if packet.header.toi != Some(Toi::ROLL_CALL) {
        return None;
    }
    Some(packet.payload(EncodingId::NO_CODE).ok()??.symbol)
}
