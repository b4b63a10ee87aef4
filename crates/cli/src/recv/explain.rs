//! Messages and hints for receptions that did not succeed.

use super::{mirrors, older, sealed, too_long};
use crate::args::{ReceiveArguments, SessionFormat};
use crate::progress::whole_seconds;
use fontana::wire::{InvalidEntry, Printable};
use fontana::{
    DropReason, Ended, Error, LittleRoom, MirrorReport, OptionalCall, Outcome, ReceiveReport,
    RejectedSession, Rejection, SuspectBlock, TableStatus, TableWarning, Verified,
};
use fontana_console::failure::Failure;
use fontana_console::units::{Bytes, Count, Percent, Time};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the messages depend on besides the outcome.
pub(super) struct Circumstances {
    /// Address and interface that it listened on.
    pub(super) place: String,
    pub(super) group: SocketAddr,
    pub(super) is_group: bool,
    pub(super) max_size: u64,
    pub(super) format: SessionFormat,
    /// At least one session was on offer.
    pub(super) offered: bool,
    /// There is no group.
    pub(super) has_mirrors_alone: bool,
    /// A file is written in place: without `--existing replace` the next run refuses it.
    pub(super) in_place: bool,
    /// Bytes of the symbols of the accepted content.
    pub(super) symbol_size: Option<u16>,
    /// It receives one version after the other.
    pub(super) follows: bool,
    /// The addresses of the ticket's sender.
    pub(super) sources: Vec<IpAddr>,
}

/// A hint, after what is known of mirrors that failed.
fn with_mirrors(summary: &ReceiveReport, hint: String) -> String {
    let of = |report: &MirrorReport| {
        let failure = report.dropped.as_ref().or(report.failing.as_ref())?;
        Some(format!("{}: {failure}\n", report.mirror))
    };
    let lines: String = summary.mirrors.iter().filter_map(of).collect();
    lines + &hint
}

/// The failure of an object that was given up.
pub(super) fn object(names: &[String], reason: Option<&Error>) -> Failure {
    match reason {
        Some(reason) => Failure::from(reason),
        None => Failure::new(
            Outcome::VerificationFailed,
            format!(
                "{}: the content that is sent is not that of the manifest: twice, all symbols of a \
                 block agreed with each other, and not with its hash",
                some_of(names)
            ),
            "the sender is broken, or another host sends other content under the session's name \
             (a ticket can name its address: fontana://ADDRESS@GROUP:PORT/...); receive again",
        ),
    }
}

/// The message of an object that was dropped.
pub(super) fn dropped(names: &[String], reason: &DropReason) -> String {
    match reason {
        // Its error names the file.
        DropReason::Mismatched(_) => reason.to_string(),
        _ if names.is_empty() => format!("a file: {reason}"),
        _ => format!("{}: {reason}", some_of(names)),
    }
}

/// The time that has passed since then, by this host's clock.
pub(super) fn time_since(unix_seconds: u64) -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(whole_seconds(now.saturating_sub(Duration::from_secs(unix_seconds))))
}

/// The message and the hint of a defect of a file delivery table.
pub(super) fn table(warning: &TableWarning) -> (String, &'static str) {
    match warning {
        TableWarning::Expired { unix_seconds } => {
            let ago = time_since(*unix_seconds);
            (
                format!("the file delivery table expired {ago} ago; its files are received"),
                "the session may be an old one, or a clock may be wrong: here, or the sender's",
            )
        }
        TableWarning::InvalidMd5 { content_location } => (
            format!("the Content-MD5 of {} is no MD5", Printable(content_location.as_bytes())),
            "such files are received, and only their length is checked",
        ),
        TableWarning::Unreadable(error) => (
            format!("the file delivery table is not valid: {error}"),
            "have the sender send another one; the receiver waits for it",
        ),
        TableWarning::InvalidEntry(InvalidEntry { content_location, error }) => {
            let name = content_location.as_deref().unwrap_or("a file without a name");
            (
                format!("{} is not received: {error}", Printable(name.as_bytes())),
                "the other files of the table are received",
            )
        }
        TableWarning::OfFontana => (
            "the session has a head: it is one of Fontana, and its files can be verified".into(),
            "receive it without --flute",
        ),
        TableWarning::Restarted => (
            "the sender was restarted, or another one sends in its name".into(),
            "files of which only a part was received are received again if they have no MD5",
        ),
    }
}

/// The message and the hint of a disk that may not have room for repair symbols.
pub(super) fn little_room(LittleRoom { free, wanted }: LittleRoom) -> (String, &'static str) {
    (
        format!(
            "the disk has {} beside the files, and repair symbols may take {} until their blocks \
             are complete",
            Bytes(free),
            Bytes(wanted)
        ),
        "free some space, or begin before the sender does: then as much is needed as is lost; if \
         the disk is full, the receiver ends with exit code 5, and the same command resumes",
    )
}

/// The message and the hint of what the system refuses, and the content does not need.
pub(super) fn tolerated(
    call: OptionalCall,
    path: &Path,
    error: &io::Error,
) -> (String, &'static str) {
    let (what, hint) = match call {
        OptionalCall::SetMode => (
            "permissions cannot be set",
            "files and directories have those that they were created with",
        ),
        OptionalCall::SetTimes => {
            ("times cannot be set", "files and directories have the time of their reception")
        }
        OptionalCall::Reserve => {
            ("space cannot be reserved", "that the disk is full is noticed during the reception")
        }
        OptionalCall::Free => {
            ("space of repair symbols cannot be freed", "they take it until their file is complete")
        }
        OptionalCall::Sync => (
            "nothing can be synced",
            "a crash of this host or a power failure may lose what was received, also its names",
        ),
        OptionalCall::RemoveStaging => (
            "what the reception does not need any more cannot be removed",
            "see what is left: fontana resume DIR",
        ),
        _ => ("something is refused that the content does not need", ""),
    };
    (format!("in {path:?} {what}: {error}"), hint)
}

/// What of a session only newer versions of the program know.
fn newer(reason: Rejection) -> Option<String> {
    match reason {
        Rejection::NewerFormat(format) => Some(format!("a head of format {format}")),
        Rejection::UnknownRecord(kind) => Some(format!("a head with a record of type {kind}")),
        _ => None,
    }
}

/// The first names: a bundle has thousands.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl Circumstances {
    pub(super) fn new(
        place: String,
        group: SocketAddr,
        arguments: &ReceiveArguments,
        offered: bool,
    ) -> Self {
        Self {
            place,
            is_group: group.ip().is_multicast(),
            group,
            max_size: arguments.max_size,
            format: arguments.format(),
            offered,
            has_mirrors_alone: !mirrors::has_group(arguments),
            in_place: arguments.to.as_deref().is_some_and(Path::is_file),
            symbol_size: None,
            follows: arguments.watch.is_some(),
            sources: arguments.ticket().map_or_else(Vec::new, |ticket| ticket.sources.clone()),
        }
    }

    /// The failure of a reception that no single error explains.
    pub(super) fn explain(&self, summary: &ReceiveReport) -> Failure {
        let too_long = match summary.outcome {
            Outcome::Incomplete | Outcome::NothingReceived => {
                self.symbol_size.and_then(|size| too_long::describe(&summary.progress, size))
            }
            _ => None,
        };
        if let Some((message, hint)) = too_long {
            let message = format!("{message}, on {}", self.place);
            return Failure::new(summary.outcome, message, hint);
        }
        let (message, hint) = match summary.outcome {
            Outcome::Authentication => self.authentication(summary),
            Outcome::Refused => (
                format!("the session on {} has more than {}", self.place, Bytes(self.max_size)),
                "if you trust the sender, accept more: --max-size".into(),
            ),
            Outcome::VerificationFailed => (
                format!("the table of contents of the session on {} is not valid", self.place),
                match self.format {
                    SessionFormat::Fontana => {
                        "ask who runs the sender; another version of Fontana may be in use".into()
                    }
                    SessionFormat::Flute | SessionFormat::Fcast => {
                        "a warning above says why; ask who runs the sender".into()
                    }
                },
            ),
            Outcome::Interrupted => {
                (self.where_it_stood("interrupted", summary), self.going_on(summary))
            }
            Outcome::Incomplete | Outcome::NothingReceived if summary.ended == Ended::NoMirrors => {
                let hint = format!("{}, with other mirrors", self.going_on(summary));
                (self.where_it_stood("no mirror is left", summary), with_mirrors(summary, hint))
            }
            Outcome::Incomplete | Outcome::NothingReceived if self.has_mirrors_alone => {
                let hint = format!("{}; allow more time (--timeout)", self.going_on(summary));
                (self.where_it_stood("incomplete", summary), with_mirrors(summary, hint))
            }
            Outcome::Incomplete if summary.ended == Ended::Closed => {
                let again = "have the sender send it again, and start the receiver before";
                let hint = format!("{}\n{again}", self.going_on(summary));
                (self.where_it_stood("the sender closed the session", summary), hint)
            }
            Outcome::Incomplete => {
                let longer = "allow more time (--timeout), and see that the sender is running";
                let hint = format!("{}\n{longer}", self.going_on(summary));
                (self.where_it_stood("incomplete", summary), hint)
            }
            _ => self.nothing_heard(summary),
        };
        Failure::new(summary.outcome, message, hint)
    }

    /// A hint about what the next run can resume.
    fn going_on(&self, summary: &ReceiveReport) -> String {
        if let Some(delivery) = summary.delivery {
            let bytes = Bytes(delivery.bytes);
            return format!(
                "the output has {bytes}, which are right, and the same command begins anew"
            );
        }
        match summary.verified {
            Some(Verified::Digest | Verified::Signed) if self.in_place => {
                "what was received is kept: the same command and --existing replace go on with it"
            }
            Some(Verified::Digest | Verified::Signed) => {
                "what was received is kept: the same command goes on with it"
            }
            Some(Verified::None) | None => "the same command begins anew",
        }
        .to_owned()
    }

    fn where_it_stood(&self, how: &str, summary: &ReceiveReport) -> String {
        let progress = &summary.progress;
        let after = Time(progress.elapsed);
        if self.has_mirrors_alone && summary.verified.is_none() {
            return format!("{how} after {after}: no mirror has sent the manifest");
        }
        if summary.verified.is_none() {
            let packets = Count(progress.stats.datagrams, "packet");
            return format!("{how} after {after}: {packets} heard on {}", self.place);
        }
        let suspect = summary.suspect.map_or_else(String::new, |SuspectBlock { toi, block }| {
            format!("; block {block} of object {toi} is corrupt, and too few symbols of it arrived")
        });
        let (missing, of) = (progress.symbols_wanted, progress.source_symbols);
        let missing = match self.symbol_size {
            Some(size) => {
                let bytes = |symbols| Bytes(symbols * u64::from(size));
                format!("{} of {}", bytes(missing), bytes(of))
            }
            None => format!("{missing} of {}", Count(of, "symbol")),
        };
        let loss = Percent(progress.loss());
        format!("{how} after {after}: {missing} are missing, loss {loss}{suspect}")
    }

    fn authentication(&self, summary: &ReceiveReport) -> (String, String) {
        let heard = Count(summary.progress.stats.foreign, "packet");
        let was = |reason| summary.rejections.iter().any(|rejected| rejected.reason == reason);
        if was(Rejection::WrongKey) {
            let message =
                format!("the session on {} is not signed with the ticket's key", self.place);
            let hint = format!(
                "{heard} arrived and none was believed; compare the ticket with what the sender \
                 printed, and with the publisher"
            );
            return (message, hint);
        }
        let mut reasons = summary.rejections.iter().map(|rejected| rejected.reason);
        if let Some(message) =
            reasons.find_map(|r| older::nothing_newer(&self.place, self.follows, r))
        {
            let hint = format!(
                "{heard} arrived and none was believed: somebody may be sending an old version \
                 again; if it is what you want, take it: --accept old"
            );
            return (message, hint);
        }
        if let Some(newer) = summary.rejections.iter().find_map(|rejected| newer(rejected.reason)) {
            let message = format!("the session on {} has {newer}", self.place);
            return (message, "receive it with a newer version of this program".into());
        }
        let expired = |rejected: &RejectedSession| match rejected.reason {
            Rejection::Expired { unix_seconds } => Some(unix_seconds),
            _ => None,
        };
        let latest = summary.rejections.iter().filter_map(expired).max().unwrap_or_default();
        let ago = time_since(latest);
        let message =
            format!("the session on {} expired {ago} ago by this host's clock", self.place);
        let hint = format!(
            "{heard} arrived; ask the publisher to send it again, or set the clock; if it is what \
             you want, take it: --accept expired"
        );
        (message, hint)
    }

    /// Why no file delivery table was read, if packets of one arrived; and what to do.
    fn unread_table(&self, table: TableStatus) -> Option<(String, &'static str)> {
        let place = &self.place;
        Some(match table {
            // A table that could not be used is reported as a rejection.
            TableStatus::None | TableStatus::Complete => return None,
            TableStatus::Route => (
                format!("the session on {place} is ROUTE (ATSC A/331), not FLUTE"),
                "ROUTE is not supported: have the sender send FLUTE",
            ),
            TableStatus::WithoutFiles => (
                format!("the table of contents on {place} lists no file"),
                "have the sender send files, or wait longer (--timeout)",
            ),
            TableStatus::WithoutGeometryOfFiles => (
                format!("the files on {place} have no length or no transmission information"),
                "have the sender give it, in the table or in EXT_FTI of their packets",
            ),
            TableStatus::WithoutFdtExtension => (
                format!("the tables of contents on {place} lack EXT_FDT"),
                "the session is not FLUTE: see what the sender sends",
            ),
            TableStatus::WithoutGeometry => (
                format!("the tables of contents on {place} lack valid EXT_FTI"),
                "FLUTE requires it (RFC 6726, section 3.4.1): have the sender send it",
            ),
            TableStatus::UnknownCode(id) => (
                format!(
                    "the table of contents on {place} has FEC Encoding ID {id}, not known here"
                ),
                "have the sender send its table without a code (FEC Encoding ID 0)",
            ),
            TableStatus::Incomplete { received, source_symbols } => {
                let all = Count(source_symbols, "symbol");
                (
                    format!("the table of contents on {place} is incomplete: {received} of {all}"),
                    "wait longer (--timeout), or see why packets are lost",
                )
            }
        })
    }

    fn nothing_heard(&self, summary: &ReceiveReport) -> (String, String) {
        let Self { place, group, .. } = self;
        let stats = &summary.progress.stats;
        let after = Time(whole_seconds(summary.progress.elapsed));
        if let Some(mismatch) = sealed::mismatch(&summary.progress, place) {
            return mismatch;
        }
        if stats.datagrams == 0 {
            let joined = if self.is_group { "the group was joined" } else { "the port was open" };
            let hint = format!(
                "{joined}, 0 packets arrived; check that the sender uses this interface's \
                 network: fontana doctor"
            );
            return (format!("nothing heard on {place} for {after}"), hint);
        }
        let malformed = match stats.malformed {
            0 => String::new(),
            n => format!(" and {} of no session", Count(n, "packet")),
        };
        if stats.session_packets == 0 {
            let is_instead = |rejected: &&RejectedSession| {
                rejected.reason == Rejection::OtherSession
                    && self.sources.contains(&rejected.session.source)
            };
            if let Some(RejectedSession { session, .. }) =
                summary.rejections.iter().rfind(is_instead)
            {
                let message = format!("the session was not heard on {place} for {after}");
                let hint = format!(
                    "its sender, {}, now sends session {}: take the ticket that it prints",
                    session.source, session.tsi
                );
                return (message, hint);
            }
            let hint = format!(
                "{} of other sessions{malformed} arrived; compare the ticket with what the \
                 sender printed, or see what is there: fontana recv --group {group}",
                Count(stats.foreign, "packet"),
            );
            return (format!("the session was not heard on {place} for {after}"), hint);
        }
        if self.offered {
            let message = format!("no session on {place} was chosen in {after}");
            return (message, "choose sooner, or take the first one: fontana recv -y".into());
        }
        let heard = Count(stats.session_packets, "packet");
        if let Some((what, hint)) = self.unread_table(summary.table) {
            return (what, format!("{heard}{malformed} arrived in {after}; {hint}"));
        }
        let other_kind = match self.format {
            SessionFormat::Fontana => {
                "with --flute or --fcast if the sender is plain FLUTE or FCAST"
            }
            SessionFormat::Flute => "without --flute if the sender is not plain FLUTE",
            SessionFormat::Fcast => "without --fcast if the sender is not FCAST",
        };
        let hint = format!("{heard}{malformed} arrived; wait longer, or receive {other_kind}");
        (format!("no table of contents heard on {place} for {after}"), hint)
    }
}
