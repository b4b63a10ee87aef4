//! The thread of a sender that collects the reports of receivers, and issues the roll calls that
//! ask for them.

use super::options::SendOptions;
use crate::cancellation::CancellationToken;
use crate::error::{Error, SetupError};
use crate::geometry::FTI_BYTES;
use crate::reporting::{Crowd, ReportCollection};
use crate::seal::{GroupKey, InstanceCipher};
use crate::system;
use crossbeam_channel::Sender;
use fontana_net::{Clock, CollectorSocket};
use fontana_proto::report::{CollectorConfig, Expected, ReceiverStatus, ReportCollector};
use fontana_proto::{ControlObject, Instant, SendMode, control_oti};
use fontana_wire::{Hash, InstanceId, ReportDatagram, RollCall, SealId, SecretKey, Ticket, Toi};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for a report: when the end of the session is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// Interval of the state of all receivers.
const CROWD_EVERY: Duration = Duration::from_secs(1);
/// Shortest interval of the check whether all receivers are complete, which looks at each.
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// Receivers that are remembered: 16 MB of them.
const MAX_RECEIVERS: usize = 1 << 16;
/// Longest time from the completion of all receivers to the end of the session, in which they are
/// told that they are known.
const FAREWELL: Duration = Duration::from_secs(3);
/// Fewest fingerprints that a roll call has room for: two roll calls a second acknowledge two
/// receivers.
const LEAST_CAPACITY: usize = 4;

/// What the thread tells the pacing thread.
pub(super) enum Update {
    /// A roll call to be sent.
    RollCall(Box<ControlObject>),
    /// A receiver has a new state.
    Report(Box<ReceiverStatus>),
    /// The state of all receivers.
    Crowd(Arc<Crowd>),
    /// All expected receivers are complete, or it is the deadline.
    Over,
}

/// What is needed to collect reports.
pub(super) struct ReportThread {
    socket: CollectorSocket,
    config: CollectorConfig,
    options: ReportCollection,
    signer: SecretKey,
    group_key: Option<GroupKey>,
    symbol_size: u16,
}

impl ReportThread {
    /// Opens the socket, if the options ask for reports. `local`: the address that packets are sent
    /// from.
    pub(super) fn prepare(
        options: &SendOptions,
        instance: InstanceId,
        ticket: &Ticket,
        manifest: Option<Hash>,
        local: IpAddr,
        symbol_size: u16,
    ) -> Result<Option<Self>, Error> {
        let Some(format) = options.format.fontana() else { return Ok(None) };
        let Some(reports) = &format.reports else { return Ok(None) };
        let needs = |needs| SetupError::Reports { needs };
        let signer = format.signer.clone().ok_or_else(|| needs("a key that signs the session"))?;
        if format.certificate.is_some() {
            return Err(needs("the publisher's own key, and a certified mirror has another").into());
        }
        if options.mode != SendMode::OnDemand {
            return Err(needs("a session without an end of its own").into());
        }
        if !(1..=ReportCollection::MAX_BUDGET).contains(&reports.budget_per_second) {
            let (what, actual) = ("the reports per second", reports.budget_per_second.into());
            return Err(SetupError::Range { what, actual, allowed: "1 to 200" }.into());
        }
        let group_key = format.group_seal.as_ref().map(|seal| seal.key.clone());
        let is_authenticated = group_key.is_some() || reports.is_signed();
        if reports.expected != Expected::Anyone
            && !is_authenticated
            && !reports.trust_unauthenticated
        {
            return Err(needs("a group key, or a key of each expected receiver").into());
        }
        let symbol_size = symbol_size - FTI_BYTES;
        let list_capacity = RollCall::capacity(symbol_size).unwrap_or(0);
        if list_capacity < LEAST_CAPACITY {
            let (what, actual) = ("the symbol size", u64::from(symbol_size + FTI_BYTES));
            let allowed = "at least 228 for a session with reports";
            return Err(SetupError::Range { what, actual, allowed }.into());
        }
        let address = reports.address.unwrap_or(SocketAddr::new(local, 0));
        if address.ip().is_unspecified() || address.ip().is_multicast() {
            return Err(needs("the address of this host that receivers can reach").into());
        }
        let socket =
            CollectorSocket::bind(address).map_err(Error::system("open the socket for reports"))?;
        let collector =
            socket.local_address().map_err(Error::system("open the socket for reports"))?;
        // A roll call every half second lists each receiver that is newly known twice.
        let acknowledged = u32::try_from(list_capacity).unwrap_or(u32::MAX);
        let config = CollectorConfig {
            instance,
            tsi: ticket.tsi,
            manifest: manifest.unwrap_or(Hash([0; Hash::SIZE])),
            collector,
            expected: reports.expected.clone(),
            budget_per_second: reports.budget_per_second.min(acknowledged),
            list_capacity,
            max_receivers: MAX_RECEIVERS,
            seed: system::random_u64()?,
        };
        let options = reports.clone();
        Ok(Some(Self { socket, config, options, signer, group_key, symbol_size }))
    }

    /// True if a group key or signatures authenticate the reports.
    fn is_authenticated(&self) -> bool {
        self.group_key.is_some() || self.options.is_signed()
    }

    /// Collects reports until `stop` is cancelled, or the pacing thread takes no more updates.
    pub(super) fn run(self, updates: &Sender<Update>, stop: &CancellationToken) {
        let clock = Clock::start();
        let id = SealId::from(self.config.instance);
        let is_authenticated = self.is_authenticated();
        let mut collector = ReportCollector::new(self.config.clone(), Instant::ZERO);
        let mut buffer = vec![0; ReportDatagram::MAX_SIZE + 1];
        let (mut next_crowd, mut next_check) = (Instant::ZERO, Instant::ZERO);
        let mut complete_at = None;
        while !stop.is_cancelled() {
            let now = Instant::from_nanos(clock.now_nanos());
            let roll_call = collector.poll_roll_call(now, system::unix_ms());
            let roll_call = roll_call.and_then(|call| self.control_object(&call));
            if let Some(object) = roll_call
                && updates.send(Update::RollCall(Box::new(object))).is_err()
            {
                return;
            }
            if now >= next_check {
                next_check = now + CHECK_EVERY;
                let is_complete = collector.summary().is_as_expected();
                complete_at = if is_complete { complete_at.or(Some(now)) } else { None };
            }
            let is_told = complete_at
                .is_some_and(|at| !collector.is_listing() || now >= at + FAREWELL)
                && self.options.until_complete;
            let elapsed = Duration::from_nanos(now.as_nanos());
            let is_over =
                is_told || self.options.deadline.is_some_and(|deadline| elapsed >= deadline);
            if is_over || now >= next_crowd {
                next_crowd = now + CROWD_EVERY;
                let crowd = crowd(&collector, is_authenticated);
                if updates.send(Update::Crowd(Arc::new(crowd))).is_err() {
                    return;
                }
            }
            if is_over {
                let _ = updates.send(Update::Over);
                return;
            }
            let wait = collector.poll_timeout().saturating_since(now).min(LONGEST_WAIT);
            let received = match self.socket.receive(wait, &mut buffer) {
                Ok(Some(length)) => buffer.get(..length),
                Ok(None) => None,
                // Only a defect of the system ends a socket that is bound.
                Err(error) => {
                    tracing::warn!(%error, "no more reports are received");
                    std::thread::sleep(LONGEST_WAIT);
                    None
                }
            };
            let Some(datagram) = received else { continue };
            let now = Instant::from_nanos(clock.now_nanos());
            let status = self.take(&mut collector, now, id, datagram);
            if let Some(status) = status
                && updates.send(Update::Report(Box::new(status))).is_err()
            {
                return;
            }
        }
        let _ = updates.send(Update::Crowd(Arc::new(crowd(&collector, is_authenticated))));
    }

    /// Reads a datagram. Returns the state of a receiver if it is new.
    fn take(
        &self,
        collector: &mut ReportCollector,
        now: Instant,
        id: SealId,
        datagram: &[u8],
    ) -> Option<ReceiverStatus> {
        let opened = ReportDatagram::parse(datagram).ok().filter(|it| it.header.instance == id);
        let opened = opened.and_then(|datagram| {
            let key = self.group_key.as_ref();
            let cipher =
                key.map(|key| InstanceCipher::of_reports(key, id, datagram.header.receiver));
            datagram.open(cipher.as_ref()).ok()
        });
        let Some(opened) = opened else {
            collector.ignore();
            return None;
        };
        collector.handle_report(now, &opened).ok().flatten()
    }

    fn control_object(&self, call: &RollCall) -> Option<ControlObject> {
        let bytes = call.emit(&self.signer);
        let oti = control_oti(bytes.len(), self.symbol_size);
        ControlObject::new(Toi::ROLL_CALL, oti, &bytes, None, 1).ok()
    }
}

fn crowd(collector: &ReportCollector, is_authenticated: bool) -> Crowd {
    Crowd {
        summary: collector.summary(),
        receivers: collector.receivers().cloned().collect(),
        is_authenticated,
    }
}
