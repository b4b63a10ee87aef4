//! What a receiver reports to its sender: roll calls among its datagrams are checked, and answered
//! when it is its turn.

use super::Receiver;
use super::sessions::{Announced, SessionState, Standing};
use crate::channel::ChannelId;
use crate::endpoint::{Destination, Output};
use crate::event::{ReceiverEvent, ReceiverOutput};
use crate::job::ReceiveJob;
use crate::lacking::Lacking;
use crate::report::{PacketCounts, ReportFacts, Reporter, RollCallRefusal};
use crate::time::Instant;
use fontana_fec::EncodingId;
use fontana_wire::{InstanceId, Packet, RollCall, SessionHead, Toi};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A receiver's reports.
#[derive(Debug)]
pub(super) struct Reports {
    pub(super) reporter: Reporter,
    /// Roll calls to be checked: those of one batch, since each batch is followed by a poll.
    calls: VecDeque<Box<[u8]>>,
    /// Answers to be sent, and where.
    sealed: VecDeque<(SocketAddr, Vec<u8>)>,
    /// The collector that was answered last.
    told: Option<SocketAddr>,
    events: VecDeque<ReceiverEvent>,
    /// The reception has left channel 0, whose roll calls are still received.
    stays_on_base: bool,
}

impl Reports {
    fn new(reporter: Reporter) -> Self {
        Self {
            reporter,
            calls: VecDeque::new(),
            sealed: VecDeque::new(),
            told: None,
            events: VecDeque::new(),
            stays_on_base: false,
        }
    }

    /// Finds roll calls, from any sender: those that the publisher has signed count.
    #[inline]
    pub(super) fn look_at(&mut self, datagram: &[u8]) {
        if RollCall::may_be(datagram)
            && let Some(symbol) = symbol_of(datagram)
        {
            self.calls.push_back(symbol.into());
        }
    }

    /// An answer is sealed.
    pub(super) fn handle_sealed(&mut self, to: SocketAddr, datagram: Vec<u8>) {
        self.sealed.push_back((to, datagram));
        if self.told.replace(to) != Some(to) {
            self.events.push_back(ReceiverEvent::Reporting { to });
        }
    }

    /// Whether the host stays joined in spite of this output: roll calls still arrive on channel 0
    /// when the reception has left it. The sender hears that no more is needed, or more again.
    pub(super) fn keeps_joined(
        &mut self,
        now: Instant,
        output: &ReceiverOutput,
        is_listening: bool,
    ) -> bool {
        let leaves = match output {
            Output::Leave(ChannelId::BASE) if !is_listening => true,
            Output::Join(ChannelId::BASE) if self.stays_on_base => false,
            _ => return false,
        };
        self.stays_on_base = leaves;
        self.reporter.hurry(now);
        true
    }

    /// The next output, except for a new answer.
    fn poll_output(&mut self, header: &mut Vec<u8>) -> Option<ReceiverOutput> {
        if let Some(call) = self.calls.pop_front() {
            return Some(Output::Job(ReceiveJob::CheckCall(call)));
        }
        if let Some((to, datagram)) = self.sealed.pop_front() {
            header.extend(datagram);
            return Some(Output::Transmit { to: Destination::Sender(to), symbol: None });
        }
        self.events.pop_front().map(Output::Event)
    }
}

impl Receiver {
    /// The receiver, which reports; perhaps with the reporter of an earlier reception. To be called
    /// before anything is received.
    #[must_use]
    pub fn with_reports(self, reporter: Reporter) -> Self {
        Self { reports: Some(Box::new(Reports::new(reporter))), ..self }
    }

    /// What reports, for the reception of the next version. This one reports no more.
    pub fn take_reporter(&mut self) -> Option<Reporter> {
        let mut reporter = self.reports.take()?.reporter;
        reporter.go_on(self.polled_at);
        Some(reporter)
    }

    /// The driver has not run for longer than it waits: what has arrived since says nothing of the
    /// path.
    pub fn handle_stall(&mut self, now: Instant) {
        self.reports.iter_mut().for_each(|reports| reports.reporter.handle_stall(now));
    }

    /// Whether the reporter answers this run of a sender. A follower of versions learns from the
    /// heads which of them a run sends, and whether that one is here already.
    fn answers(&self, now: Instant, instance: InstanceId, reporter: &mut Reporter) -> bool {
        if !reporter.follows() {
            return true;
        }
        let heads = || {
            self.sessions.iter().filter_map(|session| match &session.announced {
                Announced::Head(state) => Some((session.standing, state)),
                Announced::Nothing | Announced::Tables(_) => None,
            })
        };
        let wanted = || heads().filter(|(standing, _)| *standing != Standing::Refused);
        let is_of_run = |head: &Arc<SessionHead>| head.instance == instance;
        if wanted().any(|(_, state)| state.head().is_some_and(is_of_run)) {
            if self.ending.is_none() {
                reporter.begin();
            }
            return true;
        }
        // Senders of the version before are not told of it again while there is a newer one.
        let is_wanted = wanted().any(|(_, state)| state.head().is_some());
        let kept = heads().find_map(|(_, state)| state.kept().filter(|kept| is_of_run(kept)));
        let Some(kept) = kept.filter(|_| !is_wanted) else { return false };
        if self.config.expectation.given_up != Some(kept.manifest_version) {
            reporter.has(now, kept.manifest.hash);
        }
        true
    }

    /// Whether a sender that has asked knows how the reception has ended; `None` if none has asked.
    pub fn is_known_to_sender(&self) -> Option<bool> {
        let reporter = &self.reports.as_ref()?.reporter;
        reporter.was_asked().then(|| reporter.is_known())
    }

    /// A roll call was checked.
    pub(super) fn handle_called(
        &mut self,
        now: Instant,
        call: Result<Box<RollCall>, RollCallRefusal>,
    ) {
        let Some(mut reports) = self.reports.take() else { return };
        match call {
            Ok(call) if !self.answers(now, call.instance, &mut reports.reporter) => {}
            Ok(call) => {
                let counts = self.packet_counts(call.instance);
                if call.repair.is_some() && self.ending.is_none() {
                    let (lacking, of) = (self.symbols_wanted(), self.source_symbols());
                    self.site.iter_mut().for_each(|site| site.handle_offer(now, lacking, of));
                }
                let lacking = |most| match self.ending {
                    Some(_) => Lacking::default(),
                    None => self.lacking_of_sender(now, most),
                };
                reports.reporter.handle_roll_call(now, &call, counts, lacking);
                if self.reception.catalog.awaits_beginning() {
                    self.silence.end(now);
                }
            }
            Err(RollCallRefusal::ClocksDiffer { seconds }) => {
                let difference = Duration::from_secs(seconds);
                reports.events.push_back(ReceiverEvent::ClocksDiffer { difference });
            }
            Err(_) => {}
        }
        self.reports = Some(reports);
    }

    /// Its site could not bring a block: the sender is asked for it in this round, if it is still
    /// open.
    pub(super) fn request_of_sender(&mut self, now: Instant) {
        if self.ending.is_some() {
            return;
        }
        let Some(mut reports) = self.reports.take() else { return };
        let members = self.share_stats().members.saturating_add(1);
        reports.reporter.request(now, members, |most| self.lacking_of_sender(now, most));
        self.reports = Some(reports);
    }

    pub(super) fn poll_reports(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<ReceiverOutput> {
        let mut reports = self.reports.take()?;
        let output = reports.poll_output(header).or_else(|| {
            let answer = reports.reporter.poll(now, |instance| self.report_facts(instance))?;
            Some(Output::Job(ReceiveJob::Seal(Box::new(answer))))
        });
        self.reports = Some(reports);
        output
    }

    /// Packets of a run of a sender; of all wanted sessions, if no head of the run is here yet.
    fn packet_counts(&self, instance: InstanceId) -> PacketCounts {
        let is_of_run = |session: &&SessionState| match &session.announced {
            Announced::Head(state) => state.head().is_some_and(|head| head.instance == instance),
            Announced::Nothing | Announced::Tables(_) => false,
        };
        let latest = self.wanted_sessions().map(|session| session.sequence.latest()).max();
        let stats = self.stats();
        let symbols = stats.session_packets.saturating_add(stats.deselected);
        let is_control_alone = symbols <= stats.control_packets;
        let latest = latest.unwrap_or_default();
        let counts = PacketCounts { latest, is_control_alone, ..PacketCounts::default() };
        let channels = self.wanted_sessions().filter(is_of_run);
        let mut channels = channels.flat_map(|session| session.sequence.channels()).peekable();
        if channels.peek().is_none() {
            let received = stats.expected.saturating_sub(stats.lost);
            return PacketCounts { received, lost: stats.lost, ..counts };
        }
        channels.fold(counts, |counts, channel| PacketCounts {
            received: counts.received.saturating_add(channel.expected.saturating_sub(channel.lost)),
            lost: counts.lost.saturating_add(channel.lost),
            ..counts
        })
    }

    fn report_facts(&self, instance: InstanceId) -> ReportFacts {
        // A block that could be tried may wait for more, by its policy or after a costly attempt.
        let waits = || {
            let lacking = self.lacking(1);
            !lacking.blocks.is_empty() || !lacking.maps.is_empty()
        };
        let symbols_wanted = match self.symbols_wanted() {
            0 => u64::from(waits()),
            wanted => wanted,
        };
        ReportFacts {
            packets: self.packet_counts(instance),
            source_symbols: self.source_symbols(),
            symbols_wanted,
            local_drops: self.stats.local_drops,
            channels: u8::try_from(self.joined_channels().count()).unwrap_or(u8::MAX),
        }
    }
}

/// The symbol of a packet with a roll call.
fn symbol_of(datagram: &[u8]) -> Option<&[u8]> {
    let packet = Packet::parse(datagram).ok()?;
    if packet.header.toi != Some(Toi::ROLL_CALL) {
        return None;
    }
    Some(packet.payload(EncodingId::NO_CODE).ok()??.symbol)
}
