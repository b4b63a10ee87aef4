//! Events and reports as JSON objects: the names and fields of `docs/events.md`.
//!
//! They are a part of what the program emits. What only it does (hooks, confinement, versions that
//! are watched) has no event here.

use fontana::net::{InterfaceChange, Ungranted};
use fontana::wire::{Manifest, Printable, Toi};
use fontana::{
    Offer, ReceiveEvent, ReceiveProgress, ReceiveReport, Rejection, SendEvent, SendProgress,
    SendReport, Sender, SenderStats, SessionKey,
};
use fontana_console::exit;
use fontana_console::json::{rejection, rounded, seconds, verdict, verified};
use serde_json::{Map, Value, json};

/// What a sender sends: `session`.
pub fn session(sender: &Sender) -> Value {
    let description = sender.description();
    let manifest = &description.manifest;
    json!({
        "event": "session",
        "ticket": description.ticket.to_string(),
        "manifest": description.manifest_hash.map(|hash| hash.to_string()),
        "tsi": description.ticket.tsi.0,
        "version": manifest.version(),
        "files": manifest.files().count(),
        "bytes": manifest.content_length(),
        "source_symbols": description.source_symbols,
    })
}

/// An event of a sender.
pub fn of_sender(event: &SendEvent) -> Value {
    match event {
        SendEvent::Progress(progress) => sending(progress),
        SendEvent::Failed(error) => {
            let (message, code) = (error.to_string(), exit::code(error.outcome()));
            json!({ "event": "error", "message": message, "hint": "", "code": code })
        }
        SendEvent::RateChanged { rate } => {
            json!({ "event": "rate", "rate_bits_per_second": rate.as_bytes_per_second() * 8 })
        }
        SendEvent::Ungranted(refused) => ungranted(refused),
        SendEvent::Interface(change) => interface(change),
        SendEvent::NumberInUse { tsi } => {
            warning(format!("another sender on this host uses the number {} as well", tsi.0))
        }
        SendEvent::MtuDropped(_) => warning(
            "packets exceed the MTU of the interface, which was lowered, and are lost".into(),
        ),
        SendEvent::NotSent(loss) => warning(format!("packets are not sent: {loss:?}")),
        SendEvent::NoNeighbor(missing) => {
            warning(format!("the hardware address of a host is not known: {missing:?}"))
        }
        // What senders with reports have, which no binding offers.
        other => warning(format!("{other:?}")),
    }
}

/// The end of a sender: `summary`.
pub fn sent(report: &SendReport) -> Value {
    let mut summary = json!({
        "event": "summary",
        "verdict": verdict(report.outcome),
        "code": exit::code(report.outcome),
        "seconds": seconds(report.elapsed),
        "solved_bytes": report.solved_bytes,
        "scratch_bytes": report.scratch_bytes,
    });
    extend(&mut summary, counters_of_sender(&report.stats, report.lost));
    summary
}

/// An event of a receiver.
pub fn of_receiver(event: &ReceiveEvent) -> Value {
    match event {
        ReceiveEvent::Progress(progress) => receiving(progress),
        ReceiveEvent::Offered(offer) => offered(offer),
        ReceiveEvent::Rejected { session, reason } => rejected(*session, *reason),
        ReceiveEvent::Accepted { session, manifest, hash, verified: trust } => {
            let (source, tsi) = (session.source.to_string(), session.tsi.0);
            let mut event = json!({
                "event": "accepted", "source": source, "tsi": tsi, "verified": verified(*trust),
            });
            extend(&mut event, content(manifest, &hash.to_string()));
            event
        }
        ReceiveEvent::StreamAccepted { session, index, key, verified: trust } => json!({
            "event": "stream_accepted",
            "source": session.source.to_string(),
            "tsi": session.tsi.0,
            "verified": verified(*trust),
            "key": key.to_string(),
            "name": Printable(index.name.as_bytes()).to_string(),
            "version": index.version,
            "bytes": index.length(),
        }),
        ReceiveEvent::Selected(part) => json!({
            "event": "selected", "files": part.files, "bytes": part.bytes, "objects": part.objects,
        }),
        ReceiveEvent::Compared { bytes, of } => {
            json!({ "event": "compared", "bytes": bytes, "of_bytes": of })
        }
        ReceiveEvent::Resumed { symbols, source_symbols } => {
            json!({ "event": "resumed", "symbols": symbols, "source_symbols": source_symbols })
        }
        ReceiveEvent::CorruptBlock { toi, block, times } => {
            json!({ "event": "corrupt", "object": object(*toi), "block": block, "times": times })
        }
        ReceiveEvent::SymbolsDropped { toi, block, count } => json!({
            "event": "wrong_symbols", "object": object(*toi), "block": block, "symbols": count,
        }),
        ReceiveEvent::ReceptionComplete => json!({ "event": "reception_complete" }),
        ReceiveEvent::ObjectDone(report) => json!({
            "event": "object_done",
            "object": object(report.toi),
            "names": report.names,
            "verified": verified(report.verified),
            "bytes": report.bytes,
            "reception_inefficiency": rounded(report.reception_inefficiency),
            "loss": report.loss.map(rounded),
            "seconds": seconds(report.elapsed),
        }),
        ReceiveEvent::ObjectFailed { toi, names, error } => {
            let error = error.as_deref();
            json!({
                "event": "object_failed",
                "object": object(*toi),
                "names": names,
                "message": error.map_or_else(|| "it is incomplete".into(), ToString::to_string),
                "hint": "",
                "code": error.map(|error| exit::code(error.outcome())),
            })
        }
        _ => of_network(event),
    }
}

/// An event of a receiver about the network or the system.
fn of_network(event: &ReceiveEvent) -> Value {
    match event {
        ReceiveEvent::Silence { duration, ever_since_start } => json!({
            "event": "silence",
            "seconds": seconds(*duration),
            "ever_since_start": ever_since_start,
        }),
        ReceiveEvent::Level { channels, received_bytes_per_second } => json!({
            "event": "level",
            "channels": channels,
            "received_bits_per_second": received_bytes_per_second * 8,
        }),
        ReceiveEvent::ChannelRefused { channel, error } => {
            json!({ "event": "channel_refused", "channel": channel, "reason": error.to_string() })
        }
        ReceiveEvent::FluteFound { session, files } => json!({
            "event": "flute_found",
            "source": session.source.to_string(),
            "tsi": session.tsi.0,
            "files": files,
        }),
        ReceiveEvent::LittleRoom(room) => warning(format!(
            "the disk has {} bytes beside the files, and repair symbols may take {}",
            room.free, room.wanted
        )),
        ReceiveEvent::Tolerated { call, path, error } => {
            warning(format!("{}: {call:?} is refused: {error}", path.display()))
        }
        ReceiveEvent::Ungranted(refused) => ungranted(refused),
        ReceiveEvent::Interface(change) => interface(change),
        // Of sessions without a manifest, mirrors and groups that share, which no binding offers.
        other => warning(format!("{other:?}")),
    }
}

/// The end of a receiver: `summary`.
pub fn received(report: &ReceiveReport) -> Value {
    let progress = &report.progress;
    let mut summary = json!({
        "event": "summary",
        "verdict": verdict(report.outcome),
        "code": exit::code(report.outcome),
        "verified": report.verified.map(verified),
        "seconds": seconds(progress.elapsed),
        "bytes": report.bytes,
        "objects": report.object_count,
        "reception_inefficiency": progress.reception_inefficiency().map(rounded),
        "decoding_inefficiency": progress.decoding_inefficiency().map(rounded),
        "distinctness_inefficiency": progress.distinctness_inefficiency().map(rounded),
        "loss": progress.loss().map(rounded),
    });
    extend(&mut summary, counters_of_receiver(progress));
    summary
}

fn sending(progress: &SendProgress) -> Value {
    let stats = &progress.stats;
    let symbols = stats.source_symbols.saturating_add(stats.repair_symbols);
    let passes = rounded(symbols as f64 / progress.source_symbols.max(1) as f64);
    let mut event =
        json!({ "event": "progress", "seconds": seconds(progress.elapsed), "passes": passes });
    extend(&mut event, counters_of_sender(stats, progress.lost));
    event
}

fn counters_of_sender(stats: &SenderStats, lost: u64) -> Value {
    json!({
        "payload_bytes": stats.payload_bytes,
        "wire_bytes": stats.wire_bytes,
        "packets": stats.packets,
        "control_packets": stats.control_packets,
        "source_symbols": stats.source_symbols,
        "repair_symbols": stats.repair_symbols,
        "underruns": stats.underruns,
        "lost": lost,
    })
}

fn receiving(progress: &ReceiveProgress) -> Value {
    let mut event = json!({
        "event": "progress",
        "seconds": seconds(progress.elapsed),
        "loss": progress.loss().map(rounded),
    });
    extend(&mut event, counters_of_receiver(progress));
    event
}

fn counters_of_receiver(progress: &ReceiveProgress) -> Value {
    let stats = &progress.stats;
    json!({
        "source_symbols": progress.source_symbols,
        "symbols_wanted": progress.symbols_wanted,
        "datagrams": stats.datagrams,
        "payload_bytes": stats.payload_bytes,
        "packets": stats.session_packets,
        "control_packets": stats.control_packets,
        "fresh": stats.fresh,
        "duplicates": stats.duplicates,
        "late": stats.late,
        "invalid": stats.invalid,
        "foreign": stats.foreign,
        "malformed": stats.malformed,
        "expected": stats.expected,
        "lost": stats.lost,
        "kernel_drops": progress.kernel_drops,
        "queue_drops": progress.queue_drops,
        "channels": progress.channels,
        "corrupt_blocks": stats.corrupt_blocks,
    })
}

fn offered(offer: &Offer) -> Value {
    let (source, tsi) = (offer.session.source.to_string(), offer.session.tsi.0);
    let mut event = json!({ "event": "offered", "source": source, "tsi": tsi });
    extend(&mut event, content(&offer.manifest, &offer.head.manifest.hash.to_string()));
    event
}

fn rejected(session: SessionKey, reason: Rejection) -> Value {
    let (source, tsi) = (session.source.to_string(), session.tsi.0);
    json!({ "event": "rejected", "source": source, "tsi": tsi, "reason": rejection(reason) })
}

fn content(manifest: &Manifest, hash: &str) -> Value {
    json!({
        "label": Printable(manifest.label()).to_string(),
        "version": manifest.version(),
        "files": manifest.files().count(),
        "bytes": manifest.content_length(),
        "manifest": hash,
    })
}

fn ungranted(refused: &Ungranted) -> Value {
    warning(format!("the system refuses a setting: {:?}: {}", refused.setting, refused.error()))
}

fn interface(change: &InterfaceChange) -> Value {
    warning(match change {
        InterfaceChange::Gone { interface } => format!("interface {interface} is gone"),
        InterfaceChange::Back { interface, .. } => format!("interface {interface} is back"),
    })
}

fn warning(message: String) -> Value {
    json!({ "event": "warning", "message": message, "hint": "" })
}

fn object(toi: Toi) -> u64 {
    u64::try_from(toi.0).unwrap_or(u64::MAX)
}

/// Adds the fields of another object.
fn extend(event: &mut Value, fields: Value) {
    if let (Value::Object(event), Value::Object(fields)) = (event, fields) {
        event.extend::<Map<String, Value>>(fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{ReceiveOptions, SendOptions};
    use fontana_testing::events::{documented, fields};

    /// Checks that the page of events describes an event, with at least its fields.
    fn check(event: &Value, command: &str) {
        let page = documented(command);
        let name = event["event"].as_str().unwrap();
        let known = page.get(name).unwrap_or_else(|| panic!("{command} has no event {name}"));
        assert!(fields(event).is_subset(known), "{event} has more than {known:?}");
    }

    #[test]
    fn events_of_a_transfer_are_those_of_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, vec![7; 100_000]).unwrap();
        let (to, interface) = (Some("239.255.77.70:7770"), Some("127.0.0.1"));
        let send = SendOptions { to, interface, rate: Some(50_000_000), ..Default::default() };
        let sender = send.builder([file]).unwrap().start().unwrap();
        let description = session(&sender);
        check(&description, "fontana send");
        let ticket = description["ticket"].as_str();
        let receive = ReceiveOptions { ticket, interface, ..Default::default() };
        let builder = receive.builder().unwrap().into_dir(directory.path().join("to"));
        let receiver = builder.start().unwrap();
        let events: Vec<_> = receiver.events().map(|event| of_receiver(&event)).collect();
        let report = receiver.join().unwrap();
        for event in events.iter().chain([&received(&report)]) {
            check(event, "fontana recv");
        }
        let named = |name: &str| events.iter().any(|event| event["event"] == name);
        assert!(
            named("accepted") && named("object_done") && named("reception_complete"),
            "{events:?}"
        );
        assert_eq!(received(&report)["verdict"], "complete");
        sender.stop();
        for event in sender.events() {
            check(&of_sender(&event), "fontana send");
        }
        check(&sent(&sender.join().unwrap()), "fontana send");
        check(&warning("a message".into()), "fontana send");
    }
}
