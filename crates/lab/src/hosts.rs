//! Endpoints over real sockets: senders and receivers on hosts of this computer, in real time, on
//! real bytes, to compare with simulations of the same sessions.
//!
//! Hosts are network namespaces of this process ([`network`]). Each channel is a multicast group
//! that receivers join and leave. Between the switch and each receiver, a
//! [emulator](crate::emulator) runs the link of the simulator: with the same random stream, the
//! same packets are lost.
//!
//! [`endpoints`] runs any endpoints. [`run`] runs sessions of the product with it.
//! Endpoints that all send, and that limit how far their packets travel, run behind routers
//! ([`routed`]).

pub(crate) mod endpoints;
mod network;
pub(crate) mod routed;
mod routers;
mod together;

use crate::bytes::Pump;
use crate::claim::{Claim, Target};
use crate::emulator::FrameLink;
use endpoints::{EndpointRun, HostOutcome, HostedEndpoint, LinkedEndpoint, RunOutcome};
use fontana_net::{FrameError, NamespaceError, ReceiveError, SendError, ThreadError};
use fontana_proto::{
    ChannelId, Destination, Driver, Instant, JobRunner, ReceiveDone, ReceiveJob, Receiver,
    ReceiverEvent, Sender, SenderEvent, SplitMix64, SymbolId,
};
use fontana_sim::{IdRunner, LinkConfig};
use network::Network;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// An error of sessions between hosts of this computer.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The process lacks the privilege, or the system lacks what networks are made with.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The system does not list its interfaces.
    #[error("cannot list the network interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// An interface that was created does not exist.
    #[error("the interface {interface} is gone")]
    Missing {
        /// Its name.
        interface: String,
    },
    /// An emulator failed.
    #[error(transparent)]
    Emulator(#[from] FrameError),
    /// Sending failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A channel could not be joined.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// The sockets could not be drained.
    #[error("cannot receive: {0}")]
    Drain(#[source] io::Error),
    /// A receiver has no socket for what it sends.
    #[error("cannot open a socket to the sender: {0}")]
    Feedback(#[source] io::Error),
    /// A host's socket could not be opened.
    #[error("cannot open a socket: {0}")]
    Socket(#[source] io::Error),
    /// The system has no thread left for a host or an emulator.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// A job of an endpoint is invalid.
    #[error("a mistake of Fontana: {0}")]
    Job(&'static str),
    /// An endpoint sends to where its host cannot send.
    #[error("a mistake of Fontana: this host does not send to {0:?}")]
    Destination(Destination),
}

/// Checks that sessions can run on this computer: creates a network and removes it.
///
/// # Errors
/// The network could not be created.
pub(crate) fn check() -> Result<(), HostsError> {
    Network::new(1, None, vec![line(LinkConfig::default(), 0)]).map(drop)
}

/// For tests: the same check. Without the privilege, it reports that the test is skipped.
#[cfg(test)]
pub(crate) fn are_possible() -> bool {
    match check() {
        Err(HostsError::Namespace(NamespaceError::NotPermitted)) => {
            fontana_testing::skip("hosts on one machine need root");
            false
        }
        result => result.map(|()| true).expect("a network"),
    }
}

/// The link to a host, with the random stream of the first link of a simulation.
pub(crate) fn line(link: LinkConfig, seed: u64) -> FrameLink {
    FrameLink::new(link, SplitMix64::new(seed, 1))
}

/// What experiments between hosts say of this computer.
#[derive(Serialize, Deserialize)]
struct OnThisHost {
    /// [`Received::lost_here`].
    #[serde(rename = "lost here")]
    lost_here: f64,
}

impl OnThisHost {
    fn lost(rows: &[Self]) -> f64 {
        if rows.is_empty() { f64::NAN } else { rows.iter().map(|row| row.lost_here).sum() }
    }
}

/// A claim on the column `lost here`: packets that this computer loses are lost in no simulation.
pub(crate) fn nothing_lost_here() -> Claim {
    Claim::own(
        "here",
        "packets that this host lost, and not the links",
        Target::AtMost(0.0),
        0.0,
        OnThisHost::lost,
    )
}

/// The host that sends.
#[derive(Debug)]
pub(crate) struct SenderHost {
    pub(crate) driver: Driver<Sender, IdRunner>,
    /// Makes the bytes of its symbols.
    pub(crate) pump: Pump,
    pub(crate) channels: u8,
}

/// A host that receives.
#[derive(Debug)]
pub(crate) struct ReceiverHost<R> {
    pub(crate) receiver: Receiver,
    pub(crate) runner: R,
    /// The link from the switch.
    pub(crate) link: LinkConfig,
    /// Seed of the link's losses.
    pub(crate) seed: u64,
    /// Start of the host within the run. A host that starts at 0 joins before the sender starts.
    pub(crate) starts_after: Duration,
}

/// The result of a receiver.
#[derive(Debug)]
pub(crate) struct Received<R> {
    pub(crate) driver: Driver<Receiver, R>,
    /// Time since the start of the run; `None` if the receiver did not get so far.
    pub(crate) reception_complete: Option<Instant>,
    pub(crate) complete: Option<Instant>,
    /// Most channels that it was joined to at a time.
    pub(crate) layers: usize,
    /// Packets that this computer lost: at the sender, in the emulator, or before the sockets.
    pub(crate) lost_here: u64,
    /// Longest delay of a packet beyond that of the link.
    pub(crate) late: Duration,
}

/// Runs a session until every receiver is complete, or for `limit`. Several senders are mirrors:
/// all send to the groups of the channels.
///
/// # Errors
/// [`HostsError`] if the network cannot be created, or fails.
pub(crate) fn run<R>(
    senders: Vec<SenderHost>,
    receivers: Vec<ReceiverHost<R>>,
    limit: Duration,
) -> Result<Vec<Received<R>>, HostsError>
where
    R: JobRunner<ReceiveJob, Done = ReceiveDone, Error = &'static str> + Send,
{
    let channels = senders.iter().map(|sender| sender.channels).max().unwrap_or_default();
    let linked = |host: ReceiverHost<R>| LinkedEndpoint {
        link: line(host.link, host.seed),
        starts_after: host.starts_after,
        endpoint: ReceivingSession {
            driver: Driver::new(host.receiver, host.runner),
            reception_complete: None,
            complete: None,
            joined: BTreeSet::new(),
            layers: 0,
        },
    };
    let receivers = receivers.into_iter().map(linked).collect();
    let run = EndpointRun { senders, receivers, channels, link_back: None, limit };
    let RunOutcome { senders, receivers } = run.run()?;
    let unsent = senders.iter().map(|sender| sender.lost_here).sum::<u64>();
    let received = |outcome: HostOutcome<ReceivingSession<R>>| {
        let ReceivingSession { driver, reception_complete, complete, layers, .. } =
            outcome.endpoint;
        let lost_here = outcome.lost_here + unsent;
        Received { driver, reception_complete, complete, layers, lost_here, late: outcome.late }
    };
    Ok(receivers.into_iter().map(received).collect())
}

impl HostedEndpoint for SenderHost {
    type Endpoint = Sender;
    type Runner = IdRunner;

    fn driver(&mut self) -> &mut Driver<Sender, IdRunner> {
        &mut self.driver
    }

    fn write_symbol(&mut self, symbol: &SymbolId, packet: &mut Vec<u8>) {
        self.pump.write(symbol, packet);
    }

    fn on_event(&mut self, _now: Instant, _event: SenderEvent) {}
}

/// A receiver of the product during a run.
#[derive(Debug)]
struct ReceivingSession<R> {
    driver: Driver<Receiver, R>,
    reception_complete: Option<Instant>,
    complete: Option<Instant>,
    joined: BTreeSet<u8>,
    layers: usize,
}

impl<R> HostedEndpoint for ReceivingSession<R>
where
    R: JobRunner<ReceiveJob, Done = ReceiveDone, Error = &'static str> + Send,
{
    type Endpoint = Receiver;
    type Runner = R;

    fn driver(&mut self) -> &mut Driver<Receiver, R> {
        &mut self.driver
    }

    fn on_join(&mut self, ChannelId(channel): ChannelId) {
        self.joined.insert(channel);
        self.layers = self.joined.len().max(self.layers);
    }

    fn on_leave(&mut self, ChannelId(channel): ChannelId) {
        self.joined.remove(&channel);
    }

    fn on_event(&mut self, now: Instant, event: ReceiverEvent) {
        match event {
            ReceiverEvent::ReceptionComplete => self.reception_complete = Some(now),
            ReceiverEvent::Complete => self.complete = Some(now),
            _ => {}
        }
    }

    fn is_complete(&self) -> bool {
        self.complete.is_some()
    }
}
