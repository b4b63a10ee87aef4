//! What a receiver that reports needs of its system: keys, the clock, and a socket. The endpoint
//! decides ([`fontana_proto::report::Reporter`]).

use super::options::ReceiveOptions;
use crate::addressing::Listening;
use crate::error::{Error, SetupError};
use crate::reporting::Reporting;
use crate::seal::{GroupKey, InstanceCipher};
use crate::system;
use crate::versions::Versions;
use fontana_net::FeedbackSocket;
use fontana_proto::report::{Answer, Reporter, ReporterConfig, RollCallGate, RollCallRefusal};
use fontana_proto::{Instant, ReceiveDone, Receiver};
use fontana_wire::{ReceiverId, RollCall, SecretKey};
use std::net::{SocketAddr, SocketAddrV6};
use std::sync::Arc;

/// Checks roll calls, and seals and sends answers.
pub(super) struct ReportKeys {
    gate: RollCallGate,
    receiver: ReceiverId,
    identity: Option<SecretKey>,
    group_key: Option<GroupKey>,
    socket: Arc<FeedbackSocket>,
    /// The indices of the interfaces on which the session arrives.
    links: Vec<u32>,
}

impl ReportKeys {
    /// The receiver with its reports, unless the options do not allow them. `before`: what has
    /// reported of the version before this one.
    pub(super) fn of_receiver(
        receiver: Receiver,
        options: &ReceiveOptions,
        listening: Option<&Listening>,
        before: Option<Reporter>,
    ) -> Result<(Receiver, Option<Self>), Error> {
        let Some(reporting) = &options.reporting else { return Ok((receiver, None)) };
        let needs = |needs| SetupError::Reports { needs };
        let publisher = options
            .expectation
            .publisher
            .ok_or_else(|| needs("the publisher's key, which signs what asks for them"))?;
        // Versions of a publisher may have numbers of their own: the heads say which it sends.
        let follows = options.versions == Versions::Newer;
        let tsi = options.expectation.tsi;
        if tsi.is_none() && !follows {
            return Err(needs("a session number").into());
        }
        let Reporting { socket, label, identity, collectors, max_per_second, .. } =
            Reporting::clone(reporting);
        let reporter = match before {
            Some(before) => before,
            None => Reporter::new(ReporterConfig {
                receiver: ReceiverId(system::random_bytes()?),
                label,
                started_unix_ms: system::unix_ms(),
                max_per_second,
                reports_rate: true,
                follows,
                seed: system::random_u64()?,
            }),
        };
        let gate = RollCallGate::new(publisher, tsi).with_collectors(collectors);
        let (id, group_key) = (reporter.receiver(), options.group_key.clone());
        let links = listening.map_or_else(Vec::new, Listening::links);
        let keys = Self { gate, receiver: id, identity, group_key, socket, links };
        Ok((receiver.with_reports(reporter), Some(keys)))
    }

    /// Checks a roll call by this host's clock.
    pub(super) fn check(
        &mut self,
        now: Instant,
        symbol: &[u8],
    ) -> Result<Box<RollCall>, RollCallRefusal> {
        let unix_ms = Some(system::unix_ms()).filter(|&ms| ms >= system::WRITTEN_UNIX_MS);
        let checked = self.gate.check(now, unix_ms, symbol);
        // Each roll call may arrive twice, from a mirror of the network.
        if let Err(refusal) = &checked
            && !matches!(refusal, RollCallRefusal::Replayed)
        {
            tracing::debug!(%refusal, "a roll call asks for nothing");
        }
        checked.map(Box::new)
    }

    pub(super) fn seal(&self, answer: &Answer) -> ReceiveDone {
        let &Answer { to, instance, counter, ref feedback } = answer;
        let key = self.group_key.as_ref();
        let cipher = key.map(|key| InstanceCipher::of_reports(key, instance, self.receiver));
        let identity = self.identity.as_ref();
        ReceiveDone::Sealed {
            to,
            datagram: feedback.emit(instance, counter, identity, cipher.as_ref()),
        }
    }

    /// Sends an answer. If it is lost, the next round repeats it. A roll call names no zone of a
    /// link-local address: the sender is on one of the links on which the session arrives.
    pub(super) fn send(&self, datagram: &[u8], to: SocketAddr) {
        let send = |to| {
            if let Err(error) = self.socket.send(datagram, to) {
                tracing::debug!(%error, %to, "a report was not sent");
            }
        };
        match to {
            SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => self
                .links
                .iter()
                .for_each(|&link| send(SocketAddrV6::new(*v6.ip(), v6.port(), 0, link).into())),
            _ => send(to),
        }
    }
}
