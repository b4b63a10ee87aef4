//! The reports of receivers: which of them are expected, and what they report.

use super::confine::CompletionProgram;
use super::table::ReceiverTable;
use super::{clocks, keys, standard_input, ticket_file};
use crate::args::{ReceiversArgument, SendArguments, SessionFormat, WaitArgument};
use crate::events::{ReportedReceiver, RollCallCounts, SendEvent, StatusFile};
use crate::hook::Ended;
use fontana::reports::{
    CrowdSummary, Expected, ExpectedReceiver, ExpectedState, MissingReceiver, ReceiverStatus,
};
use fontana::wire::{PublicKey, ReceiverId, ReceiverLabel, ReceiverState, Ticket};
use fontana::{Addressing, Crowd, FontanaFormat, Outcome, Rate, RateFollowing, ReportCollection};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::json::rounded;
use fontana_console::units::{Count, ExactRate};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::Path;

/// Largest file of `--receivers`: 65 536 lines of a label and a key.
const MAX_EXPECT_BYTES: u64 = 16 << 20;
/// Receivers that a file of `--receivers` names, at most: as many as a sender remembers.
pub(super) const MAX_EXPECTED: usize = 1 << 16;
/// Missing names in the status file while it has not all receivers: with 2 000 of these, it has
/// at most 1 MB.
const MAX_MISSING: usize = 2_000;
/// Names that are listed at the end on a terminal.
const MAX_LISTED: usize = 100;

/// How reports are authenticated.
const AUTHENTICATE: &str = "leave --open out\nor give all a group key: --group-key\nor a key to \
                            each receiver (recv --identity) and its line of the file of \
                            --receivers: LABEL ed25519:KEY\nor accept that: \
                            --trust-reports";

/// How reports are collected; `None` if no receiver is asked for them.
pub(super) fn collection(
    arguments: &SendArguments,
    addressing: &Addressing,
) -> Result<Option<ReportCollection>, Failure> {
    let reports = &arguments.reports;
    let range = arguments.least_rate().map(|_| "--rate MIN..MAX");
    let needed_by = reports.needed_by().or(range);
    if needed_by.is_none() && !asks_by_default(arguments) {
        return Ok(None);
    }
    if let Some(option) = needed_by {
        refuse_where_nobody_is_asked(arguments, option)?;
    }
    if arguments.format() != SessionFormat::Fontana {
        return Ok(None);
    }
    let mut collection = ReportCollection::default();
    collection.address = reports.ask.flatten();
    collection.where_possible = needed_by.is_none();
    collection.expected = match &reports.receivers {
        None => Expected::Anyone,
        Some(ReceiversArgument::Count(count)) => Expected::Count(*count),
        Some(ReceiversArgument::Names(names)) => Expected::Named(named(names)?),
        Some(ReceiversArgument::File(path)) => Expected::Named(read(path)?),
    };
    // The versions of a directory follow each other until the user ends that. Of sessions on
    // several networks none has all receivers.
    collection.until_complete =
        reports.receivers.is_some() && arguments.watch.is_none() && arguments.networks() == 1;
    collection.rests = !arguments.has_layers();
    let is_stream = standard_input::is_stream(arguments);
    collection.deadline = arguments.duration.filter(|_| collection.until_complete || is_stream);
    collection.max_age = reports.max_age;
    if reports.wait_for_all && !matches!(collection.expected, Expected::Named(_)) {
        let message = "--wait-for-all with a number of receivers: none of them has a name";
        let hint = "name them: --receivers NAME,NAME or --receivers FILE";
        return Err(Failure::new(Outcome::Usage, message, hint));
    }
    collection.trust_unauthenticated = reports.trust_reports;
    let is_automatic = arguments.has_automatic_rate()
        && is_authenticated(arguments, &collection)
        && leaves_this_host(addressing);
    if is_automatic || range.is_some() {
        let mut following = RateFollowing::of_any_network();
        following.least = arguments.least_rate().map(Rate::bits_per_second).or(following.least);
        following.start = following.start.max(following.least.unwrap_or(following.start));
        following.must_finish = reports.wait_for_all;
        collection.rate = Some(following);
    }
    let relies = [
        (range.is_some(), "--rate MIN..MAX", "slow the session down"),
        (reports.receivers.is_some(), "--receivers", "send them"),
    ];
    let unauthenticated = relies.into_iter().find(|(relies, ..)| *relies);
    match unauthenticated.filter(|_| !is_authenticated(arguments, &collection)) {
        Some((_, option, harm)) => Err(Failure::new(
            Outcome::Usage,
            format!("{option}, and nothing authenticates the reports: any host could {harm}"),
            AUTHENTICATE,
        )),
        None => Ok(Some(collection)),
    }
}

/// Refuses an option that needs reports in a session whose receivers send none.
fn refuse_where_nobody_is_asked(arguments: &SendArguments, option: &str) -> Result<(), Failure> {
    let why = match arguments.format() {
        SessionFormat::Flute | SessionFormat::Fcast => {
            "plain FLUTE or FCAST, whose receivers know no roll calls"
        }
        SessionFormat::Fontana if arguments.one_way => "--one-way, which excludes reports",
        SessionFormat::Fontana if is_pushed(arguments) => "--push, which sends everything once",
        SessionFormat::Fontana if arguments.certificate.is_some() => {
            "--certificate: receivers report to the publisher's own key alone"
        }
        SessionFormat::Fontana => return Ok(()),
    };
    let (message, hint) = (format!("{option} with {why}"), "leave one of them out");
    Err(Failure::new(Outcome::Usage, message, hint))
}

/// Whether packets take a network: those of a host to itself need no other rate.
fn leaves_this_host(addressing: &Addressing) -> bool {
    addressing.interface().is_ok_and(|interface| !interface.is_loopback)
}

/// Whether reports are authenticated, or trusted without that.
pub(super) fn is_authenticated(arguments: &SendArguments, reports: &ReportCollection) -> bool {
    let is_signed = matches!(&reports.expected, Expected::Named(list)
        if list.iter().all(|receiver| receiver.key.is_some()));
    keys::are_of_ticket(arguments)
        || arguments.group_key.is_some()
        || is_signed
        || reports.trust_unauthenticated
}

/// Whether receivers are asked although no option says so: if the ticket makes their reports
/// authentic.
fn asks_by_default(arguments: &SendArguments) -> bool {
    keys::are_of_ticket(arguments) && !is_pushed(arguments) && !arguments.one_way
}

/// Whether files are sent once. A stream is in any case.
fn is_pushed(arguments: &SendArguments) -> bool {
    arguments.push.is_some() && !standard_input::is_stream(arguments)
}

/// Says that receivers are not asked, though they would be by default.
pub(super) fn tell_unasked(format: &FontanaFormat, ticket: &Ticket, console: &Console) {
    if format.reports.is_some() && ticket.ask.is_none() {
        console.say("receivers are not asked: this host has no address or port for their reports");
    }
}

/// The receivers that a stream waits for; 0: none. `reports`: those that it asks for.
pub(super) fn awaited(
    arguments: &SendArguments,
    reports: Option<&ReportCollection>,
) -> Result<u32, Failure> {
    let reports = reports.filter(|reports| match arguments.wait {
        None => is_authenticated(arguments, reports),
        Some(WaitArgument::Number(number)) => number > 0,
        Some(WaitArgument::Time(_)) => false,
    });
    let Some(reports) = reports else {
        if arguments.duration.is_some() && arguments.reports.receivers.is_none() {
            let message = "--for, and the stream waits for no receivers";
            let hint = "wait for some before it begins: --wait N\nor after its end: \
                        --receivers COUNT|NAMES|FILE\nor read standard input to its end first: --spool";
            return Err(Failure::new(Outcome::Usage, message, hint));
        }
        return Ok(0);
    };
    let expected = match &reports.expected {
        Expected::Anyone => None,
        Expected::Count(count) => Some(*count as usize),
        Expected::Named(list) => Some(list.len()),
    };
    let number = match arguments.wait {
        Some(WaitArgument::Number(number)) => number,
        _ => expected.map_or(1, |expected| u32::try_from(expected).unwrap_or(u32::MAX)),
    };
    if let Some(expected) = expected.filter(|&expected| expected < number as usize) {
        let message = format!("--wait {number}, and only {expected} are expected (--receivers)");
        let hint = format!("wait for fewer: --wait {expected}\nor expect more");
        return Err(Failure::new(Outcome::Usage, message, hint));
    }
    if !is_authenticated(arguments, reports) {
        let message = format!(
            "--wait {number}, and nothing authenticates the reports: any host could begin the stream"
        );
        return Err(Failure::new(Outcome::Usage, message, AUTHENTICATE));
    }
    Ok(number)
}

/// Receivers by their labels, with commas.
fn named(names: &str) -> Result<Vec<ExpectedReceiver>, Failure> {
    parse(&names.replace(',', "\n")).map_err(|message| refused(Path::new(names), &message))
}

fn refused(given: &Path, message: &dyn Display) -> Failure {
    let hint = "a number, labels with commas (rack-1,rack-2), or a file with a line for each \
                receiver: LABEL, or LABEL ed25519:KEY; # begins a comment";
    Failure::new(Outcome::Usage, format!("--receivers {given:?}: {message}"), hint)
}

/// Reads the file of `--receivers`.
fn read(path: &Path) -> Result<Vec<ExpectedReceiver>, Failure> {
    let unread = |error: std::io::Error| refused(path, &error);
    let size = std::fs::metadata(path).map_err(unread)?.len();
    if size > MAX_EXPECT_BYTES {
        return Err(refused(path, &format_args!("{size} bytes are too many")));
    }
    let text = std::fs::read_to_string(path).map_err(unread)?;
    parse(&text).map_err(|message| refused(path, &message))
}

fn parse(text: &str) -> Result<Vec<ExpectedReceiver>, String> {
    let (mut receivers, mut seen) = (Vec::new(), BTreeSet::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let at = |error: &dyn Display| format!("line {}: {error}", number + 1);
        let mut words = line.split_whitespace();
        let Some(label) = words.next() else { continue };
        let label: ReceiverLabel = label.parse().map_err(|error| at(&error))?;
        let key = words.next().map(|word| {
            let hex = word.strip_prefix("ed25519:").ok_or_else(|| at(&"a key is ed25519:KEY"))?;
            hex.parse::<PublicKey>().map_err(|error| at(&error))
        });
        if words.next().is_some() {
            return Err(at(&"more than a label and a key"));
        }
        if !seen.insert(label.clone()) {
            return Err(at(&format!("{label} appears twice")));
        }
        receivers.push(ExpectedReceiver { label, key: key.transpose()? });
        if receivers.len() > MAX_EXPECTED {
            return Err(format!("more than {MAX_EXPECTED} receivers"));
        }
    }
    if receivers.is_empty() {
        return Err("it names no receiver".to_owned());
    }
    Ok(receivers)
}

/// Time in which a receiver that knows the content gets a symbol of it, whatever it loses.
const WITHOUT_SYMBOLS: u32 = 8;

/// Whether a receiver has lost most packets, and each with a symbol.
fn gets_short_packets(status: &ReceiverStatus) -> bool {
    let report = &status.report;
    report.state == ReceiverState::Receiving
        && report.seconds >= WITHOUT_SYMBOLS
        && (report.permille, report.symbols_lacking > 0) == (0, true)
        && report.loss_ppm > 500_000
}

/// Shows what receivers report.
pub(super) struct ReportWatch<'a> {
    arguments: &'a SendArguments,
    /// The program of `--exec`, if there is one.
    program: Option<&'a CompletionProgram>,
    /// The names of receivers that have reported: as many as the sender remembers.
    names: BTreeMap<ReceiverId, ReceiverLabel>,
    /// The program runs.
    runs: bool,
    has_run: bool,
    outcome: Outcome,
    /// The status file could not be written, and the user knows.
    has_warned: bool,
    /// The receivers that get less than the least rate, at most [`MAX_LISTED`], and all of them.
    slow: Vec<String>,
    slow_count: u64,
    /// Those that have not reported their names yet, and what they get. They are shown when they
    /// do, or at the end.
    unnamed: BTreeMap<ReceiverId, Rate>,
    /// The user knows that a receiver gets short packets alone.
    has_told_of_short: bool,
    /// The user knows that a receiver's clock is another one.
    has_told_of_clock: bool,
    table: ReceiverTable,
}

impl<'a> ReportWatch<'a> {
    pub(super) fn new(
        arguments: &'a SendArguments,
        program: Option<&'a CompletionProgram>,
    ) -> Self {
        Self {
            arguments,
            program,
            names: BTreeMap::new(),
            runs: false,
            has_run: false,
            outcome: Outcome::Complete,
            has_warned: false,
            slow: Vec::new(),
            slow_count: 0,
            unnamed: BTreeMap::new(),
            has_told_of_short: false,
            has_told_of_clock: false,
            table: ReceiverTable::new(),
        }
    }

    /// Shows a receiver's new state.
    pub(super) fn show_report(&mut self, status: &ReceiverStatus, console: &Console) {
        let receiver = status.report.receiver;
        self.note_name(status);
        console.event(&SendEvent::Report(ReportedReceiver::new(status)));
        let name = name_of(status);
        let counts = !self.has_told_of_clock && self.believes(status);
        if let Some(message) = counts.then(|| clocks::differ(status, &name)).flatten() {
            self.has_told_of_clock = true;
            console.warning(&message, clocks::HINT);
        }
        match status.report.state {
            ReceiverState::Receiving => console.note(format_args!("{name} receives")),
            ReceiverState::Complete { .. } => console.note(format_args!("{name} is complete")),
            ReceiverState::Failed { exit_code } => {
                console.say(format_args!("{name} has failed with exit code {exit_code}"));
            }
        }
        if status.is_contradictory {
            console.say(format_args!("{name} contradicts itself, and does not count as complete"));
        }
        if let Some(rate) = self.unnamed.remove(&receiver) {
            self.show_slow(&receiver, rate, console);
        }
    }

    /// Whether the report counts.
    pub(super) fn believes(&self, status: &ReceiverStatus) -> bool {
        status.by.is_authentic() || self.arguments.reports.trust_reports
    }

    /// Notes the name of a receiver whose rate reports count.
    fn note_name(&mut self, status: &ReceiverStatus) {
        if !self.believes(status) {
            return;
        }
        let receiver = status.report.receiver;
        if self.names.len() >= MAX_EXPECTED && !self.names.contains_key(&receiver) {
            // Ids are random: so is the one that is forgotten.
            let next = self.names.range(receiver..).next().map(|(id, _)| *id);
            match next {
                Some(next) => _ = self.names.remove(&next),
                None => _ = self.names.pop_first(),
            }
        }
        self.names.insert(receiver, status.report.label.clone());
    }

    /// Shows that no content is sent, or that it is sent again.
    pub(super) fn show_rest(rests: bool, console: &Console) {
        console.event(&SendEvent::Resting { rests });
        console.note(match rests {
            true => "no receiver lacks anything: waiting for others",
            false => "another receiver has come: sending again",
        });
    }

    /// Shows the rate that follows the receivers.
    pub(super) fn show_rate(rate: Rate, console: &Console) {
        console.event(&SendEvent::Rate { rate_bits_per_second: rate.as_bits_per_second() });
    }

    /// Notes a receiver that gets less than the least rate, and shows it as soon as its name is
    /// known: rate reports have none.
    pub(super) fn note_slow(&mut self, receiver: &ReceiverId, rate: Rate, console: &Console) {
        if self.names.contains_key(receiver) {
            self.show_slow(receiver, rate, console);
        } else {
            self.unnamed.insert(*receiver, rate);
        }
    }

    fn show_slow(&mut self, receiver: &ReceiverId, rate: Rate, console: &Console) {
        let label = self.names.get(receiver).cloned().unwrap_or_default();
        let name = match label.is_empty() {
            true => format!("receiver {receiver}"),
            false => label.to_string(),
        };
        console.event(&SendEvent::Slow {
            receiver: receiver.to_string(),
            label: label.to_string(),
            received_bits_per_second: rate.as_bits_per_second(),
        });
        let gets = ExactRate(rate.as_bits_per_second());
        console.say(format_args!(
            "{name} gets {gets}, less than the least rate: the rate does not follow it"
        ));
        self.slow_count += 1;
        if self.slow.len() < MAX_LISTED {
            self.slow.push(format!("{name}: {gets}"));
        }
    }

    /// Shows all receivers together, once a second.
    pub(super) fn show_crowd(&mut self, crowd: &Crowd, console: &Console) {
        console.event(&SendEvent::RollCall(RollCallCounts::new(crowd)));
        self.table.show(crowd, console);
        let without_symbols = crowd.receivers.iter().find(|status| gets_short_packets(status));
        if let Some(status) = without_symbols.filter(|_| !self.has_told_of_short) {
            self.has_told_of_short = true;
            let name = name_of(status);
            console.warning(
                &format!("{name} gets the table of contents, and no packet with content"),
                "a link on its path may have a smaller MTU: --symbol-size 1024 makes packets that \
                 fit most tunnels, and tracepath ADDRESS shows it",
            );
        }
        if let Some(path) = &self.arguments.reports.status_file {
            let written = ticket_file::replace(path, StatusFile::new(crowd).to_text().as_bytes());
            if let Err(error) = written
                && !std::mem::replace(&mut self.has_warned, true)
            {
                let message = format!("cannot write the status to {path:?}: {error}");
                console.warning(&message, "the session goes on");
            }
        }
        if crowd.summary.is_as_expected() && !std::mem::replace(&mut self.has_run, true) {
            self.start_program(console);
        }
    }

    /// Names the receivers that the least rate was too fast for.
    fn list_slow(&self, console: &Console) {
        if self.slow_count == 0 {
            return;
        }
        let slow = Count(self.slow_count, "receiver");
        console.say(format_args!("the rate did not follow {slow} below the lowest rate:"));
        self.slow.iter().for_each(|slow| console.say(format_args!("  {slow}")));
        if let Some(more) = self.slow_count.checked_sub(MAX_LISTED as u64).filter(|&more| more > 0)
        {
            console.say(format_args!("  and {more} more; all of them: --json"));
        }
    }

    fn start_program(&mut self, console: &Console) {
        let Some(program) = self.program else { return };
        match program.begin() {
            None => self.runs = true,
            Some(ended) => self.note_end(program, ended, console),
        }
    }

    fn note_end(&mut self, program: &CompletionProgram, ended: Ended, console: &Console) {
        let how = match ended {
            Ended::Success => return,
            Ended::Failed(how) => format!("failed: {how}"),
            Ended::NotStarted(why) => format!("cannot be started: {why}"),
        };
        let message = format!("--exec {:?} {how}", program.name());
        let hint = "all expected receivers are complete";
        console.failure(&Failure::new(Outcome::Io, message, hint));
        self.outcome = Outcome::Io;
    }

    /// Shows the end, and waits for the program. Returns its outcome.
    pub(super) fn conclude(mut self, crowd: &Crowd, console: &Console) -> Outcome {
        // The last state may not have been shown.
        self.show_crowd(crowd, console);
        self.table.clear();
        for (receiver, rate) in std::mem::take(&mut self.unnamed) {
            self.show_slow(&receiver, rate, console);
        }
        let summary = &crowd.summary;
        for missing in &summary.missing {
            console.event(&SendEvent::Missing {
                label: missing.label.to_string(),
                state: state_word(missing.state).into(),
                code: failed_code(missing.state),
            });
        }
        if summary.expected.is_some() || summary.known > 0 {
            console.say(sentence(summary));
        }
        for missing in summary.missing.iter().take(MAX_LISTED) {
            console.say(format_args!("  {}: {}", missing.label, explain(missing)));
        }
        if let Some(more) = summary.missing.len().checked_sub(MAX_LISTED).filter(|&more| more > 0) {
            console.say(format_args!("  and {more} more; all of them: --json"));
        }
        self.list_slow(console);
        if !crowd.is_authenticated && summary.known > 0 {
            console.say("nothing authenticates these reports: any host could have sent them");
        }
        if let Some(program) = self.program.filter(|_| self.runs) {
            self.note_end(program, program.end(), console);
        }
        self.outcome
    }
}

/// `12 of 50 expected receivers are complete, 2 have failed, 3 never reported`.
fn sentence(summary: &CrowdSummary) -> String {
    // Several processes under one name do not make it complete.
    let named = summary.expected.map(|all| all.saturating_sub(summary.missing.len() as u64));
    let named = named.filter(|_| !summary.missing.is_empty());
    let complete = summary.complete.min(named.unwrap_or(u64::MAX));
    let start = match summary.expected {
        Some(expected) => {
            format!("{complete} of {} complete", Count(expected, "expected receiver"))
        }
        None => format!("{complete} of {} complete", Count(summary.known, "receiver")),
    };
    let never = match summary.expected {
        Some(_) if !summary.missing.is_empty() => {
            let never = |missing: &&MissingReceiver| missing.state == ExpectedState::NeverHeard;
            summary.missing.iter().filter(never).count() as u64
        }
        _ => summary.never_heard(),
    };
    let mut text = format!("{start}, {} failed", summary.failed);
    if summary.expected.is_some() {
        text.push_str(&format!(", {never} never heard of"));
    }
    text
}

fn name_of(status: &ReceiverStatus) -> String {
    match status.report.label.is_empty() {
        true => format!("receiver {}", status.report.receiver),
        false => status.report.label.to_string(),
    }
}

fn explain(missing: &MissingReceiver) -> String {
    match missing.state {
        ExpectedState::NeverHeard => "has never reported".to_owned(),
        ExpectedState::Reported(ReceiverState::Receiving) => {
            "received when it reported last".to_owned()
        }
        ExpectedState::Reported(ReceiverState::Failed { exit_code }) => {
            format!("has failed with exit code {exit_code}")
        }
        ExpectedState::Reported(ReceiverState::Complete { .. }) => "is complete".to_owned(),
        ExpectedState::OtherContent => "is complete, with other content".to_owned(),
        ExpectedState::Contradictory => {
            "several receivers report under this name, or one contradicts itself".to_owned()
        }
    }
}

fn state_word(state: ExpectedState) -> &'static str {
    match state {
        ExpectedState::NeverHeard => "never_heard",
        ExpectedState::Reported(state) => reported_word(state),
        ExpectedState::OtherContent => "other_content",
        ExpectedState::Contradictory => "contradictory",
    }
}

fn reported_word(state: ReceiverState) -> &'static str {
    match state {
        ReceiverState::Receiving => "receiving",
        ReceiverState::Complete { .. } => "complete",
        ReceiverState::Failed { .. } => "failed",
    }
}

fn failed_code(state: ExpectedState) -> Option<u8> {
    match state {
        ExpectedState::Reported(ReceiverState::Failed { exit_code }) => Some(exit_code),
        _ => None,
    }
}

impl ReportedReceiver {
    fn new(status: &ReceiverStatus) -> Self {
        let report = &status.report;
        Self {
            receiver: report.receiver.to_string(),
            label: report.label.to_string(),
            state: reported_word(report.state).into(),
            code: failed_code(ExpectedState::Reported(report.state)),
            percent: f64::from(report.permille) / 10.0,
            symbols_wanted: report.symbols_lacking,
            loss: rounded(f64::from(report.loss_ppm) / 1e6),
            kernel_drops: report.kernel_drops,
            channels: report.channels,
            seconds: f64::from(report.seconds),
            signed: status.is_signed(),
            contradictory: status.is_contradictory,
        }
    }
}

impl RollCallCounts {
    fn new(crowd: &Crowd) -> Self {
        let summary = &crowd.summary;
        Self {
            known: summary.known,
            complete: summary.complete,
            failed: summary.failed,
            estimate: summary.estimate,
            expected: summary.expected,
            ignored: summary.ignored,
            authenticated: crowd.is_authenticated,
        }
    }
}

impl StatusFile {
    fn new(crowd: &Crowd) -> Self {
        let most = if crowd.is_whole { usize::MAX } else { MAX_MISSING };
        let missing = crowd.summary.missing.iter().take(most);
        Self {
            counts: RollCallCounts::new(crowd),
            whole: crowd.is_whole,
            missing: missing.map(|it| it.label.to_string()).collect(),
            receivers: crowd.receivers.iter().map(ReportedReceiver::new).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana::reports::Authority;
    use fontana::wire::{Hash, ReceiverReport, RollCallEcho};

    /// As many receivers as the sender shows while it runs, each with the longest values.
    #[test]
    fn the_status_file_has_at_most_a_megabyte_until_it_is_whole() {
        let label: ReceiverLabel = "n".repeat(ReceiverLabel::MAX_SIZE).parse().unwrap();
        let report = ReceiverReport {
            receiver: ReceiverId([0xFF; 16]),
            label: label.clone(),
            started_unix_ms: u64::MAX,
            round: u32::MAX,
            echo: RollCallEcho::default(),
            state: ReceiverState::Complete { manifest: Hash([0xFF; 32]) },
            permille: 999,
            symbols_lacking: u64::MAX,
            loss_ppm: 123_456,
            kernel_drops: u64::MAX,
            channels: u8::MAX,
            seconds: u32::MAX,
        };
        let status = ReceiverStatus {
            report,
            reported_at: fontana_proto::Instant::ZERO,
            by: Authority::Group,
            is_contradictory: false,
        };
        let missing = MissingReceiver { label, state: ExpectedState::NeverHeard };
        let mut crowd = Crowd::default();
        crowd.receivers = vec![status; 2_000];
        crowd.summary.missing = vec![missing; MAX_EXPECTED];
        let text = StatusFile::new(&crowd).to_text();
        assert!(text.len() <= 1_000_000, "{} bytes", text.len());
        crowd.is_whole = true;
        assert!(StatusFile::new(&crowd).to_text().len() > 4_000_000, "all missing names");
    }

    #[test]
    fn a_name_that_has_never_reported_is_not_counted_as_complete() {
        let label: ReceiverLabel = "rack-2".parse().unwrap();
        let mut summary =
            CrowdSummary { complete: 2, known: 2, expected: Some(2), ..Default::default() };
        assert_eq!(
            sentence(&summary),
            "2 of 2 expected receivers complete, 0 failed, 0 never heard of"
        );
        summary.missing = vec![MissingReceiver { label, state: ExpectedState::NeverHeard }];
        assert_eq!(
            sentence(&summary),
            "1 of 2 expected receivers complete, 0 failed, 1 never heard of"
        );
    }

    #[test]
    fn a_file_of_expected_receivers_has_labels_keys_and_comments() {
        let key = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c";
        let text = format!("# racks\n\nrack-1.example\nrack-2 ed25519:{key} # with a key\n");
        let receivers = parse(&text).unwrap();
        assert_eq!(receivers[0].label.as_str(), "rack-1.example");
        assert_eq!(receivers[0].key, None);
        assert_eq!(receivers[1].key, Some(key.parse().unwrap()));
        for (bad, why) in [
            ("", "names no receiver"),
            ("# only a comment", "names no receiver"),
            ("a\nb\na\n", "line 3: a appears twice"),
            ("a ed25519:12\n", "line 1: not a key"),
            ("a 12\n", "line 1: a key is ed25519:KEY"),
            ("ok\nn\u{e4}me\n", "line 2: a label has at most 63"),
            (&format!("a ed25519:{key} b"), "more than a label and a key"),
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.contains(why), "{bad:?}: {error}");
        }
        let labels = |names| named(names).map(|list| list.into_iter().map(|it| it.label));
        let labels = |names| labels(names).unwrap().map(|it| it.to_string()).collect::<Vec<_>>();
        assert_eq!(labels("rack-1,rack-2"), ["rack-1", "rack-2"]);
        assert_eq!(labels("rack-1,"), ["rack-1"]);
        assert!(named(",").is_err() && named("a,a").is_err());
    }
}
