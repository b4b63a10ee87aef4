//! The parameters of a run, and the constants of the protocols.

use fontana_sim::Multicast;
use std::time::Duration;

/// A protocol, without its use of FEC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Global recovery with duplicate avoidance (Floyd, Jacobson, Liu, McCanne, Zhang, "A Reliable
    /// Multicast Framework", 1997).
    Srm,
    /// Recovery in subgroups by multicast of limited scope, with unicast requests (Yavatkar,
    /// Griffioen, Sudan, "A Reliable Dissemination Protocol", 1995; the paper, section 2).
    TmtpUni,
    /// Recovery in subtrees by subcast (Li, Cheriton, "OTERS", 1998; the paper, section 2).
    Oters,
    /// Ours: no member sends anything. After each group the source sends so many FEC packets of it.
    OneWay {
        /// FEC packets of each group.
        share: u32,
    },
    /// Ours: members request as in SRM, and the source alone repairs.
    OnDemand,
}

impl Protocol {
    /// Those of the paper.
    pub(super) const ALL: [Self; 3] = [Self::Oters, Self::TmtpUni, Self::Srm];

    /// Its name, with reactive FEC alone or with proactive FEC, too.
    pub(super) const fn name(self, redundancy: FecUse) -> &'static str {
        match (self, redundancy) {
            (Self::Srm, FecUse::Reactive) => "SRM",
            (Self::Srm, FecUse::Proactive) => "SRM-pro",
            (Self::TmtpUni, FecUse::Reactive) => "TMTP-uni",
            (Self::TmtpUni, FecUse::Proactive) => "TMTP-pro",
            (Self::Oters, FecUse::Reactive) => "OTERS",
            (Self::Oters, FecUse::Proactive) => "OTERS-pro",
            (Self::OneWay { .. }, _) => "one way",
            (Self::OnDemand, FecUse::Reactive) => "on demand",
            (Self::OnDemand, FecUse::Proactive) => "on demand-pro",
        }
    }
}

/// When FEC packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FecUse {
    /// On request.
    Reactive,
    /// Also before any request (section 3.2).
    Proactive,
}

/// What a run consists of. Sections are those of Li and Cheriton, 1999.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiConfig {
    pub(super) protocol: Protocol,
    pub(super) fec: FecUse,
    /// Segments that the source sends: 448 (section 4.2).
    pub(super) segments: u32,
    /// k: segments of a transmission group. 1: packets are repaired as they are.
    pub(super) group_segments: u32,
    /// d: the share of the nodes that are members (table 1).
    pub(super) density: f64,
    /// p: packet error rate of a link (table 1).
    pub(super) loss: f64,
    /// b: mean length of a burst of losses (table 1).
    pub(super) burst: f64,
    pub(super) multicast: Multicast,
    pub(super) constants: Constants,
}

impl LiConfig {
    /// From one segment to the next: 100 a second (section 4.2).
    pub(super) const SPACING: Duration = Duration::from_millis(10);
    /// When the source begins (section 4.2).
    pub(super) const BEGINS: Duration = Duration::from_millis(200);
    /// Bytes of a packet with a segment. The paper prints none; at 100 packets a second over links
    /// of 45 Mbit/s and more, they do not matter.
    pub(super) const DATA_BYTES: u16 = 1_000;
    /// Bytes of the other packets.
    pub(super) const CONTROL_BYTES: u16 = 64;

    /// The parameters of table 1.
    pub(super) const fn table_1(protocol: Protocol, multicast: Multicast) -> Self {
        Self {
            protocol,
            fec: FecUse::Reactive,
            segments: 448,
            group_segments: 1,
            density: 0.10,
            loss: 0.01,
            burst: 2.0,
            multicast,
            constants: Constants::DEFAULT,
        }
    }
}

/// Constants that the paper does not print, each with its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Constants {
    /// C1, C2: a request waits between C1 and C1 + C2 distances to the source. Default of ns-2's
    /// SRM agent (`tcl/lib/ns-default.tcl`), with which the paper simulates.
    pub(super) request_from: f64,
    pub(super) request_spread: f64,
    /// D1, D2: a repair waits between D1 and D1 + D2 distances to the requester. ns-2.
    pub(super) repair_from: f64,
    pub(super) repair_spread: f64,
    /// How often the wait for a request doubles at most. ns-2.
    pub(super) backoff_limit: u32,
    /// Distances for which requests are ignored after a repair: Floyd et al., section III.
    pub(super) hold: f64,
    /// Weight of a new sample of a distance. Ours.
    pub(super) sample_weight: f64,
    /// Wait for offers, for each link that a search may cross. Searches of 8 and of 16 links end
    /// after 300 and 620 ms: forming the subgroups "takes 300 to 600ms" (section 4.2).
    pub(super) search_wait: Duration,
    /// A member that finds only parents beyond so many links becomes the representative of a new
    /// subgroup. Ours: a stub domain and its transit router.
    pub(super) representative_beyond: u8,
    /// Most children of a representative. Ours.
    pub(super) most_children: usize,
    /// Round trips to the representative after which a request is repeated; doubles each time.
    /// Ours.
    pub(super) retry: f64,
    /// From one heartbeat to the next, times a number drawn from 0.9 to 1.1 (section 4.2, ns-2).
    pub(super) heartbeat: Duration,
    /// Members join within this time. Ours: less than the 300 to 600 ms that the paper's
    /// hierarchies take to form.
    pub(super) join_within: Duration,
}

impl Constants {
    pub(super) const DEFAULT: Self = Self {
        request_from: 2.0,
        request_spread: 2.0,
        repair_from: 1.0,
        repair_spread: 1.0,
        backoff_limit: 5,
        hold: 3.0,
        sample_weight: 0.25,
        search_wait: Duration::from_millis(20),
        representative_beyond: 4,
        most_children: 16,
        retry: 2.0,
        heartbeat: Duration::from_secs(1),
        join_within: Duration::from_millis(50),
    };
}
