//! Reports of receivers: the options of a sender that collects them, and of a receiver that sends
//! them. `docs/reports.md` has the conditions under which a receiver sends.

use crate::outcome::Outcome;
use crate::rate::Rate;
use fontana_net::{CollectorSocket, FeedbackSocket};
use fontana_proto::report::{CrowdSummary, Expected, ReceiverStatus, Reporter};
use fontana_wire::{ReceiverLabel, SecretKey};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How a sender collects reports. Its session must be signed, be sent from a known address, and
/// have no end of its own ([`SendMode::OnDemand`](crate::SendMode)) or be a stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReportCollection {
    /// Address and port of this host to collect reports on. `None`: the address that packets are
    /// sent from, and the first free port from 7703 on.
    pub address: Option<SocketAddr>,
    /// Without an address of this host that receivers can reach, ask none instead of failing.
    pub where_possible: bool,
    /// The receivers that are expected.
    pub expected: Expected,
    /// Reports that all receivers together send per second, at most: 1 to 200.
    pub budget_per_second: u32,
    /// End when all expected receivers are complete. After the end of a stream, receivers that
    /// still report are otherwise waited for during a few seconds.
    pub until_complete: bool,
    /// Send no content while no receiver lacks symbols, after one and a half times the source
    /// symbols, or at once if all that are expected have them. A receiver that comes later gets it;
    /// one that says nothing, only if others need it, too. For sessions on one channel without an
    /// end ([`SendMode::OnDemand`](crate::SendMode)). After the source symbols, one whose code and
    /// symbols permit that sends what receivers request, and all blocks only while one lacks more
    /// than an eighth, or none reports.
    pub rests: bool,
    /// End after this time in any case. `None`: never. Of a stream: begin, or give up, within this
    /// time, and wait for reports no longer than this after its end.
    pub deadline: Option<Duration>,
    /// Largest age of what is sent again: end so long after the source symbols were sent, whatever
    /// receivers lack then. Needs [`SendMode::RepairOnDemand`](crate::SendMode), or
    /// [`rests`](Self::rests). `None`: any.
    pub max_age: Option<Duration>,
    /// How the rate follows the receivers: the sender's rate is then the highest. Needs authentic
    /// reports, one channel and one address. `None`: the rate is constant.
    pub rate: Option<RateFollowing>,
    /// Count expected receivers as complete although neither a group key nor signatures
    /// authenticate their reports.
    pub trust_unauthenticated: bool,
    /// The socket of the version before, instead of another one.
    pub(crate) socket: Option<Arc<CollectorSocket>>,
}

impl Default for ReportCollection {
    fn default() -> Self {
        Self {
            address: None,
            where_possible: false,
            expected: Expected::Anyone,
            budget_per_second: Self::MAX_BUDGET,
            until_complete: false,
            rests: false,
            deadline: None,
            max_age: None,
            rate: None,
            trust_unauthenticated: false,
            socket: None,
        }
    }
}

impl ReportCollection {
    /// Largest [`budget_per_second`](Self::budget_per_second): as many receivers are acknowledged
    /// twice in two roll calls a second of one packet.
    pub const MAX_BUDGET: u32 = 200;

    /// True if keys are expected of some receivers, and others are not trusted.
    pub(crate) fn has_signers(&self) -> bool {
        let has_key = matches!(&self.expected, Expected::Named(list)
            if list.iter().any(|receiver| receiver.key.is_some()));
        has_key && !self.trust_unauthenticated
    }

    /// True if signatures authenticate the reports of all expected receivers.
    pub(crate) fn is_signed(&self) -> bool {
        matches!(&self.expected, Expected::Named(list)
            if list.iter().all(|receiver| receiver.key.is_some()))
    }
}

/// How a sender's rate follows what its receivers report
/// ([`RateControl`](fontana_proto::report::RateControl)).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RateFollowing {
    /// The rate at first, which doubles until a receiver cannot follow.
    pub start: Rate,
    /// The lowest rate: receivers that get less are named ([`SendEvent::Slow`]), and it does not
    /// follow them. `None`: [`LEAST`](Self::LEAST).
    ///
    /// [`SendEvent::Slow`]: crate::SendEvent
    pub least: Option<Rate>,
    /// Follow the expected receivers also below `least`, down to [`LEAST`](Self::LEAST), until they
    /// have finished. Needs [`Expected::Named`].
    pub must_finish: bool,
    /// Begin in short rounds, take the losses of the first rates for errors of the lines, see a
    /// queue that grows as a full path. Where no receiver reports within three seconds, send at a
    /// tenth of the interface's speed, which is 10 Mbit/s if it is unknown, and 5 Mbit/s of a radio
    /// ([`RateConfig::blind`](fontana_proto::report::RateConfig::blind)).
    pub automatic: bool,
}

impl RateFollowing {
    /// For networks of which nothing is known: [automatic](Self::automatic), from 2 Mbit/s, and not
    /// below 1 Mbit/s.
    #[must_use]
    pub fn of_any_network() -> Self {
        let (start, least) = (Rate::mbit(2), Some(Rate::mbit(1)));
        Self { start, least, must_finish: false, automatic: true }
    }

    /// Default of [`start`](Self::start).
    pub const START: Rate = Rate::mbit(1);
    /// The lowest rate without another: a packet or two a second. Below that, a round of reports
    /// takes longer than a control interval may.
    pub const LEAST: Rate = Rate::bits_per_second(16_000);
}

impl Default for RateFollowing {
    fn default() -> Self {
        Self { start: Self::START, least: None, must_finish: false, automatic: false }
    }
}

/// How a receiver reports whether it is complete and what it lacks, and, to a sender whose rate
/// follows that, how much arrives. It sends only to the address in a roll call that the publisher
/// of its ticket has signed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reporting {
    /// The socket to send from. The application opens it, so that it can confine itself to it.
    pub socket: Arc<FeedbackSocket>,
    /// The name of this receiver; may be empty.
    pub label: ReceiverLabel,
    /// The key that signs reports.
    pub identity: Option<SecretKey>,
    /// Where the senders that the ticket names collect reports. What asks for them there counts
    /// even if its clock and this host's differ.
    pub collectors: Vec<SocketAddr>,
    /// Reports per second, at most.
    pub max_per_second: u32,
    /// The exit code of the application for an outcome, which a failed receiver reports.
    pub exit_code: fn(Outcome) -> u8,
}

impl Reporting {
    /// Reporting from `socket`, without a name and a key.
    pub fn new(socket: FeedbackSocket, exit_code: fn(Outcome) -> u8) -> Self {
        Self {
            socket: Arc::new(socket),
            label: ReceiverLabel::default(),
            identity: None,
            collectors: Vec::new(),
            max_per_second: Reporter::DEFAULT_MAX_PER_SECOND,
            exit_code,
        }
    }
}

/// What a sender knows of its receivers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Crowd {
    /// The numbers.
    pub summary: CrowdSummary,
    /// The receivers that have reported, or those of them that are not complete or have changed
    /// lately, at most 2 000.
    pub receivers: Vec<ReceiverStatus>,
    /// `receivers` are all of them: once a minute, and at the end.
    pub is_whole: bool,
    /// A group key or signatures authenticate the reports.
    pub is_authenticated: bool,
}
