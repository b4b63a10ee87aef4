//! The results of the demonstration, as a table and as events.

use super::receiver::{Part, PartResult, RECEIVERS};
use crate::events::{DemoEvent, verified};
use crate::progress::PACKET_HEADER;
use fontana::{SessionDescription, Verified};
use fontana_console::json::{rounded, seconds};
use fontana_console::units::Percent;
use std::fmt::Write;

/// Bytes on the wire of one copy of the content without loss, without control packets.
pub(super) fn one_copy(session: &SessionDescription) -> u64 {
    let symbol = session.manifest.objects().first().map_or(0, |object| object.oti.symbol_size);
    let headers = PACKET_HEADER + fontana::net::IpVersion::V4.header_size() as u64;
    session.source_symbols * (u64::from(symbol) + headers)
}

/// Bytes on the wire if each receiver got its own copy and every lost packet were sent again until
/// it arrives: the minimum for any unicast protocol.
pub(super) fn separate_copies(one_copy: u64) -> u64 {
    RECEIVERS.iter().map(|part| (one_copy as f64 / (1.0 - part.loss)) as u64).sum()
}

pub(super) fn receiver(part: &Part, outcome: &PartResult) -> DemoEvent {
    DemoEvent::Receiver {
        name: part.name.into(),
        loss: outcome.loss().map(rounded),
        joined_at: seconds(outcome.joined_at),
        verified: verified(trust(outcome)).into(),
        reception_inefficiency: outcome.reception_inefficiency().map(rounded),
        seconds: seconds(outcome.took),
    }
}

/// How the file was verified: not at all if it differs.
fn trust(outcome: &PartResult) -> Verified {
    match outcome.verified {
        Some(verified) if outcome.is_exact => verified,
        _ => Verified::None,
    }
}

pub(super) fn table(outcomes: &[PartResult]) -> String {
    let mut table = format!(
        "{:<12} {:>7} {:>10} {:>9} {:>23} {:>8}",
        "receiver", "loss", "joined at", "verified", "reception inefficiency", "seconds"
    );
    for (part, outcome) in RECEIVERS.iter().zip(outcomes) {
        let inefficiency = outcome
            .reception_inefficiency()
            .map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
        let verified = if outcome.is_exact { verified(trust(outcome)) } else { "NO" };
        // Writing to a string does not fail.
        let _ = write!(
            table,
            "\n{part:<12} {:>7} {:>8.1} s {verified:>9} {inefficiency:>23} {:>8.1}",
            Percent(outcome.loss()),
            outcome.joined_at.as_secs_f64(),
            outcome.took.as_secs_f64(),
        );
    }
    if outcomes.iter().any(PartResult::was_stopped) {
        table.push_str(if outcomes.iter().any(|outcome| outcome.resumed) {
            "\nthe stopped one was away for a second and went on with the symbols it had"
        } else {
            "\nthe stopped one was away for a second and began anew, without the symbols it had \
             heard; both lives count"
        });
    }
    table
}
