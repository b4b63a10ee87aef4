//! What a sender needs to ask its receivers for reports: it checks the options, and opens the
//! socket.

use super::answers::ReturnPath;
use super::options::SendOptions;
use crate::addressing::Addressing;
use crate::error::{Error, SetupError};
use crate::geometry;
use crate::reporting::ReportCollection;
use crate::seal::GroupKey;
use crate::system;
use fontana_net::CollectorSocket;
use fontana_proto::report::{CollectorConfig, Expected, RateConfig};
use fontana_proto::{CollectionConfig, RepairBy, SendMode, StreamSender};
use fontana_wire::{
    Hash, InstanceId, RateCall, RepairCall, RollCall, SealId, SecretKey, Ticket, Tsi,
};
use std::net::SocketAddr;
use std::sync::Arc;

/// Receivers that are remembered: at most 32 MB of them.
const MAX_RECEIVERS: usize = 1 << 16;
/// Ports that reports are collected on, if the options name none.
const FIRST_PORT: u16 = 7703;
const LAST_PORT: u16 = 7799;
/// Fewest fingerprints that a roll call has room for: two roll calls a second acknowledge two
/// receivers.
const LEAST_CAPACITY: usize = 4;

/// Whether no router is between the sender and its receivers: none would pass their packets on.
pub(super) fn is_near(addressing: &Addressing) -> bool {
    addressing.hop_limit <= 1 && addressing.address().ip().is_multicast()
}

/// The address of this host that receivers can reach: `local`, which packets are sent from, or the
/// one from which the routing table would send them. Without a port, and with the zone of a
/// link-local address.
pub(super) fn reachable(mut local: SocketAddr, addressing: &Addressing) -> SocketAddr {
    local.set_port(0);
    let routed = || fontana_net::routed_source(addressing.address().ip());
    match local.ip().is_unspecified().then(routed).flatten() {
        Some(routed) => SocketAddr::new(routed, 0),
        None => local,
    }
}

/// What receivers may demand beside reports.
pub(super) struct Demands {
    pub(super) repair: RepairBy,
    /// Another rate.
    pub(super) rate: Option<RateConfig>,
}

/// The session whose receivers report.
pub(super) struct ReportedSession {
    pub(super) instance: InstanceId,
    pub(super) tsi: Tsi,
    /// What complete receivers have.
    pub(super) manifest: Hash,
    /// The address that packets are sent from, without a port.
    pub(super) local: SocketAddr,
    /// No router is between the sender and its receivers.
    pub(super) is_near: bool,
    /// Bytes of a symbol of content.
    pub(super) symbol_size: u16,
    pub(super) signer: SecretKey,
    pub(super) group_key: Option<GroupKey>,
}

/// The return path of a session, and what its sender decides about receivers.
pub(super) struct Reports {
    pub(super) path: ReturnPath,
    pub(super) config: CollectionConfig,
}

impl Reports {
    /// The rate at first, in bytes per second, if it follows the receivers.
    pub(super) fn start_rate(&self) -> Option<u64> {
        self.config.rate.as_ref().map(|rate| rate.start)
    }

    /// Whether files are repaired by requests.
    pub(super) fn repairs_files(&self) -> bool {
        matches!(self.config.repair, RepairBy::Rounds(_))
    }

    /// The port that receivers report to.
    pub(super) fn port(&self) -> u16 {
        self.config.collector.collector.port()
    }

    /// Opens the socket, if the options ask for reports. `local`: the address that packets are sent
    /// from.
    pub(super) fn prepare(
        options: &SendOptions,
        instance: InstanceId,
        ticket: &Ticket,
        manifest: Option<Hash>,
        local: SocketAddr,
        symbol_size: u16,
        demands: Demands,
    ) -> Result<Option<Self>, Error> {
        let Some(format) = options.format.fontana() else { return Ok(None) };
        let Some(reports) = &format.reports else { return Ok(None) };
        let needs = |needs| SetupError::Reports { needs };
        let signer = format.signer.clone().ok_or_else(|| needs("a key that signs the session"))?;
        if format.certificate.is_some() {
            return Err(needs("the publisher's own key, and a certified mirror has another").into());
        }
        if matches!(options.mode, SendMode::Push { .. }) {
            return Err(needs("a session without an end of its own").into());
        }
        if reports.max_age.is_some() && !matches!(demands.repair, RepairBy::Rounds(_)) {
            return Err(needs("repair on demand, to have a largest age of what is repaired").into());
        }
        let session = ReportedSession {
            instance,
            tsi: ticket.tsi,
            manifest: manifest.unwrap_or(Hash([0; Hash::SIZE])),
            local,
            is_near: is_near(&options.addressing),
            symbol_size,
            signer,
            group_key: format.group_seal.as_ref().map(|seal| seal.key.clone()),
        };
        Self::open(reports, session, demands)
    }

    /// Opens the socket for a session, or a stream. `None` if that is not possible, and need not
    /// be.
    pub(super) fn open(
        reports: &ReportCollection,
        session: ReportedSession,
        demands: Demands,
    ) -> Result<Option<Self>, Error> {
        match Self::open_socket(reports, session, demands) {
            Err(_) if reports.where_possible => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn open_socket(
        reports: &ReportCollection,
        session: ReportedSession,
        Demands { repair, rate }: Demands,
    ) -> Result<Self, Error> {
        let needs = |needs| SetupError::Reports { needs };
        let ReportedSession { instance, tsi, manifest, local, symbol_size, signer, .. } = session;
        let ReportedSession { is_near, group_key, .. } = session;
        if !(1..=ReportCollection::MAX_BUDGET).contains(&reports.budget_per_second) {
            let (what, actual) = ("the reports per second", reports.budget_per_second.into());
            return Err(SetupError::Range { what, actual, allowed: "1 to 200" }.into());
        }
        let is_authenticated = group_key.is_some() || reports.is_signed();
        // A session that need not repair by requests does without if roll calls have no room.
        let repair = match repair {
            RepairBy::Rounds(config) if reports.rests => {
                let pending = Some(config.pending_capacity);
                match list_capacity(symbol_size, RateCall::SIZE as u16, pending) {
                    0..LEAST_CAPACITY => RepairBy::Nothing,
                    _ => RepairBy::Rounds(config),
                }
            }
            RepairBy::Stream { waits_for, on_request: true } => {
                let beside = (RateCall::SIZE + RepairCall::LAST_SIZE) as u16;
                let pending = Some(StreamSender::PENDING_CAPACITY);
                let on_request = list_capacity(symbol_size, beside, pending) >= LEAST_CAPACITY;
                RepairBy::Stream { waits_for, on_request }
            }
            repair => repair,
        };
        let (pending, waits_for, repairs_stream) = match &repair {
            RepairBy::Nothing => (None, 0, false),
            RepairBy::Rounds(repair) => (Some(repair.pending_capacity), 0, false),
            &RepairBy::Stream { waits_for, on_request } => {
                (on_request.then_some(StreamSender::PENDING_CAPACITY), waits_for, on_request)
            }
        };
        if (reports.expected != Expected::Anyone || waits_for > 0 || repairs_stream)
            && !is_authenticated
            && !reports.trust_unauthenticated
        {
            return Err(needs("a group key, or a key of each expected receiver").into());
        }
        let control_size = geometry::control_symbol_size(symbol_size);
        let rate_bytes = rate.as_ref().map_or(0, |_| RateCall::SIZE as u16);
        let last_bytes = if repairs_stream { RepairCall::LAST_SIZE as u16 } else { 0 };
        let list_capacity = list_capacity(symbol_size, rate_bytes + last_bytes, pending);
        if list_capacity < LEAST_CAPACITY {
            let (what, actual) = ("the symbol size", u64::from(symbol_size));
            let allowed = "at least 232 for a session with reports, 824 to repair on demand, 828 \
                           for a stream that does, 840 for a rate that follows the receivers";
            return Err(SetupError::Range { what, actual, allowed }.into());
        }
        let address = reports.address.unwrap_or(local);
        if address.ip().is_unspecified() || address.ip().is_multicast() {
            return Err(needs("the address of this host that receivers can reach").into());
        }
        let socket = match &reports.socket {
            Some(socket) => Arc::clone(socket),
            None => Arc::new(bind(address)?),
        };
        let collector =
            socket.local_address().map_err(Error::system("open the socket for reports"))?;
        // A roll call every half second lists each receiver that is newly known twice.
        let acknowledged = u32::try_from(list_capacity).unwrap_or(u32::MAX);
        let config = CollectorConfig {
            expected: reports.expected.clone(),
            budget_per_second: reports.budget_per_second.min(acknowledged),
            list_capacity,
            max_receivers: MAX_RECEIVERS,
            trusts_unauthenticated: reports.trust_unauthenticated,
            is_near,
            ..CollectorConfig::new(instance, tsi, manifest, collector, system::random_u64()?)
        };
        let config = CollectionConfig {
            repair,
            must_finish: reports.rate.is_some_and(|following| following.must_finish),
            rate,
            until_complete: reports.until_complete,
            rests: reports.rests,
            deadline: reports.deadline,
            ..CollectionConfig::new(config, control_size)
        };
        let id = SealId::from(instance);
        Ok(Self { path: ReturnPath { socket, id, group_key, signer, is_authenticated }, config })
    }
}

/// Receivers that a roll call has room to list, beside what else it has.
fn list_capacity(symbol_size: u16, beside: u16, pending: Option<usize>) -> usize {
    let room = geometry::control_symbol_size(symbol_size).saturating_sub(beside);
    RollCall::capacity(room, pending).unwrap_or(0)
}

/// Opens a socket on this port; without one, on the same as before a restart, so that the ticket is
/// the same, or on any if all of those are in use.
fn bind(address: SocketAddr) -> Result<CollectorSocket, Error> {
    let bind = |port| {
        let mut address = address;
        address.set_port(port);
        CollectorSocket::bind(address)
    };
    let ports = match address.port() {
        0 => FIRST_PORT..=LAST_PORT,
        port => port..=port,
    };
    let socket = ports.map(bind).find_map(Result::ok).map_or_else(|| bind(address.port()), Ok);
    socket.map_err(Error::system("open the socket for reports"))
}
