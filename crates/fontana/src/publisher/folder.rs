//! The thread that prepares versions.

use super::changes::Changes;
use super::handover::{Handover, STOP_LATENCY};
use super::settle::{Moment, Next, Settling, State, States};
use crate::cancellation::CancellationToken;
use crate::content::{Content, GrowingBase, LostFile, VersionBase, VersionFiles};
use crate::error::{Error, IoError, SetupError};
use crate::format::{FluteFormat, Format};
use crate::send::{PreparedSender, SendOptions};
use crossbeam_channel::{Receiver, Sender};
use fontana_proto::Category;
use fontana_store::{
    FileIndex, Found, Identity, LeftOut, SourceError, SourceFile, SourceFiles, Tree, TreeEntry,
};
use fontana_wire::{Manifest, Printable, RelativePath};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Number of settling times after which a name that changes is reported.
const RESTLESS_AFTER: u32 = 10;
/// Largest number of names that are reported so.
const MOST_RESTLESS: usize = 16;
/// Shortest interval between scans: a program that changes a file does so in several steps.
const LEAST_PAUSE: Duration = Duration::from_millis(20);
/// Scans take at most one part of this many of the time.
const SCAN_SHARE: u32 = 5;

/// Time until a table is renewed again that could not be renewed.
const RENEW_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Time until a file is read again that could not be read.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// What happens while a version is sent.
pub(super) enum Note {
    /// The files cannot be sent in their present state.
    Failed(Error),
    /// A file or directory is left out.
    LeftOut(Error),
    /// A name has not been unchanged for long enough.
    Restless { name: String, since: Duration },
}

/// The connections to the thread that sends.
pub(super) struct Outbox {
    pub(super) ready: Sender<Box<PreparedSender>>,
    pub(super) note: Sender<Note>,
    pub(super) handover: Arc<Handover>,
    /// Reports that something may have changed, or that a version may be replaced.
    pub(super) news: Receiver<()>,
}

/// The state of the thread.
pub(super) struct Folder {
    send: SendOptions,
    /// The last version that was made.
    version: u64,
    changes: Changes,
    ended: CancellationToken,
    settling: Settling,
    settle: Duration,
    /// What the last version contained, also if it could not be prepared.
    sent: Option<States>,
    base: Option<VersionBase>,
    /// The last state of a session of plain FLUTE.
    growing: GrowingBase,
    /// When its table is renewed.
    renews_at: Option<Instant>,
    /// That of the last version.
    manifest: Option<Manifest>,
    last_error: String,
    restless: BTreeSet<Vec<u8>>,
    /// Files that could not be read, by their names.
    unreadable: BTreeMap<Vec<u8>, Unreadable>,
    /// The messages about what is left out.
    left_out: BTreeSet<String>,
}

/// A file that could not be read.
struct Unreadable {
    identity: Identity,
    since: Instant,
    error: SourceError,
}

impl Folder {
    pub(super) fn new(
        send: SendOptions,
        version: u64,
        settle: Duration,
        changes: Changes,
        ended: CancellationToken,
    ) -> Self {
        Self {
            send,
            version,
            changes,
            ended,
            settling: Settling::new(settle, Instant::now()),
            settle,
            sent: None,
            base: None,
            growing: GrowingBase::default(),
            renews_at: None,
            manifest: None,
            last_error: String::new(),
            restless: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            left_out: BTreeSet::new(),
        }
    }

    /// Prepares versions until the publisher ends.
    pub(super) fn run(mut self, first: Tree, out: &Outbox) {
        let mut tree = first;
        let mut pause = LEAST_PAUSE;
        let mut is_first = true;
        while !self.ended.is_cancelled() {
            // Decisions are made for the time before the scan: a file that is settled by then is in
            // its present state in the tree.
            let now = Moment::now();
            if !std::mem::take(&mut is_first) {
                match tree.scan_again(&self.send.files, &self.send.filter) {
                    Ok(again) => tree = again,
                    Err(error) => {
                        self.report(error.into(), out);
                        self.wait(now.instant + self.settle, Duration::ZERO, out);
                        continue;
                    }
                }
                pause = LEAST_PAUSE.max((SCAN_SHARE - 1) * now.instant.elapsed());
            }
            self.leave_out_unreadable(&mut tree, now.instant);
            self.report_left_out(&tree, out);
            self.settling.observe(State::of(&tree), now, self.changes.watcher.is_some());
            self.report_restless(now.instant, out);
            let poll = now.instant + self.changes.every;
            let next = match self.settling.next(self.sent.as_ref(), now.instant) {
                Next::Wait(_) if self.is_to_be_renewed(now.instant) => Next::Prepare,
                next => next,
            };
            match next {
                Next::Prepare if !out.handover.is_allowed() => self.wait(poll, pause, out),
                Next::Prepare => {
                    if let Err(error) = self.prepare(&tree, now.instant, out) {
                        self.report(error, out);
                    }
                }
                Next::Wait(until) => {
                    self.wait(until.map_or(poll, |until| until.min(poll)), pause, out);
                }
            }
        }
    }

    /// Prepares a version and passes it on, unless it would be the same as the last. `scanned`: the
    /// time before the scan of the tree.
    fn prepare(&mut self, tree: &Tree, scanned: Instant, out: &Outbox) -> Result<(), Error> {
        let files = self.view(tree, scanned);
        let states = State::of(&files.tree);
        let renews = self.is_to_be_renewed(scanned);
        if self.sent.as_ref() == Some(&states) && !renews {
            self.settling.consider();
            return Ok(());
        }
        if renews {
            // If that fails.
            self.renews_at = Some(scanned + RENEW_AGAIN_AFTER);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let version = (now.as_millis() as u64).max(self.version.saturating_add(1));
        let mut options = self.send.clone();
        if let Format::Fontana(format) = &mut options.format {
            format.version = version;
        }
        let (mut next, mut next_growing) = (None, None);
        let (before, growing) = (self.base.as_ref(), &self.growing);
        let (mut lost, mut is_same) = (Vec::new(), false);
        let token = CancellationToken::new();
        let session = PreparedSender::prepare_content(options, token, |options, format| {
            if let Format::Flute(_) = format {
                let (content, base) = Content::growing(options, files, growing, &mut lost)?;
                next_growing = Some(base);
                return Ok(content);
            }
            let (content, base) = Content::version(options, files, before, &mut lost)?;
            is_same = self.manifest.as_ref().is_some_and(|last| is_same_content(last, &content));
            next = Some(base);
            match is_same {
                true => Err(SetupError::NothingToSend.into()),
                false => Ok(content),
            }
        });
        match session {
            // Names, links or times that are not sent have changed, or bytes were written again.
            Err(_) if is_same => {
                (self.base, self.sent) = (next, Some(states));
                self.settling.consider();
                Ok(())
            }
            Ok(session) => {
                (self.version, self.base, self.sent) = (version, next, Some(states));
                self.manifest = Some(session.description().manifest.clone());
                self.growing = next_growing.unwrap_or_default();
                self.renews_at = self.table_lifetime().map(|lifetime| scanned + lifetime / 2);
                self.last_error.clear();
                self.settling.consider();
                if let Format::Fontana(format) = &mut self.send.format
                    && let Some(reports) = &mut format.reports
                {
                    // All versions have one ticket.
                    reports.socket = session.collector_socket();
                }
                // Sending fails only after the session's end.
                out.handover.replace(|| _ = out.ready.send(Box::new(session)));
                Ok(())
            }
            // A file that changed while it was read is in another state in the next scan. One that
            // could not be read is left out of it.
            Err(Error::Io(IoError::Source(error)))
                if error.category() == Category::SourceChanged || self.give_up(lost) =>
            {
                std::thread::sleep(LEAST_PAUSE);
                Ok(())
            }
            Err(error) => {
                self.sent = Some(states);
                self.settling.consider();
                Err(error)
            }
        }
    }

    /// Validity of the tables of a session of plain FLUTE.
    fn table_lifetime(&self) -> Option<Duration> {
        let Format::Flute(flute) = &self.send.format else { return None };
        Some(flute.table_lifetime.unwrap_or(FluteFormat::GROWING_LIFETIME))
    }

    /// Whether the table is to be renewed although no file has changed.
    fn is_to_be_renewed(&self, now: Instant) -> bool {
        self.renews_at.is_some_and(|at| at <= now)
    }

    /// Notes files that could not be read. False if there are none.
    fn give_up(&mut self, lost: Vec<LostFile>) -> bool {
        let has_changed =
            |lost: &LostFile| matches!(lost.error.category(), Category::SourceChanged);
        let is_renamed = self.send.name.is_some();
        let mut has_any = false;
        for LostFile { name, identity, error } in
            lost.into_iter().filter(|lost| !is_renamed && !has_changed(lost))
        {
            has_any = true;
            let unreadable = Unreadable { identity, since: Instant::now(), error };
            self.unreadable.insert(name.as_bytes().to_vec(), unreadable);
        }
        has_any
    }

    /// Removes files that could not be read from a tree, for a while or until they change.
    fn leave_out_unreadable(&mut self, tree: &mut Tree, now: Instant) {
        self.unreadable.retain(|_, file| now < file.since + READ_AGAIN_AFTER);
        if self.unreadable.is_empty() {
            return;
        }
        let Tree { files, entries, left_out, .. } = tree;
        let unreadable = &self.unreadable;
        entries.retain(|entry| {
            let Some(given_up) = unreadable.get(&entry.name) else { return true };
            let Found::File(index) = entry.found else { return true };
            let is_same = files.file(index).is_ok_and(|f| f.identity() == given_up.identity);
            if is_same {
                let error = given_up.error.clone();
                left_out.push(LeftOut { name: entry.name.clone(), error });
            }
            !is_same
        });
    }

    /// Reports what is left out, once.
    fn report_left_out(&mut self, tree: &Tree, out: &Outbox) {
        let messages = tree.left_out.iter().map(|item| item.error.to_string());
        let before = std::mem::replace(&mut self.left_out, messages.collect());
        for item in &tree.left_out {
            if !before.contains(&item.error.to_string()) {
                let _ = out.note.send(Note::LeftOut(item.error.clone().into()));
            }
        }
    }

    /// The names of the last version that are in, or below, what is left out: they exist.
    fn hidden(&self, tree: &Tree) -> impl Iterator<Item = RelativePath> {
        let mut left_out: Vec<_> = tree.left_out.iter().map(|item| &item.name).collect();
        left_out.sort_unstable();
        let present: BTreeSet<_> = match left_out.is_empty() {
            true => BTreeSet::new(),
            false => tree.entries.iter().map(|entry| &entry.name).collect(),
        };
        let is_hidden = |name: &&Vec<u8>| {
            let above = (0..name.len()).filter(|&at| name.get(at) == Some(&b'/'));
            let mut above = above.filter_map(|at| name.get(..at)).chain([&name[..]]);
            !present.contains(*name)
                && above.any(|name| left_out.binary_search_by(|n| n[..].cmp(name)).is_ok())
        };
        let names = self.sent.iter().flat_map(States::keys).filter(is_hidden);
        names.filter_map(|name| self.path(name)).collect::<Vec<_>>().into_iter()
    }

    /// What a version contains now: names that are settled, in their present state, and others in
    /// that of the last version, if it still exists.
    fn view(&self, tree: &Tree, now: Instant) -> VersionFiles {
        let mut view = Tree {
            roots: tree.roots.clone(),
            left_out: tree.left_out.clone(),
            skipped: tree.skipped,
            ..Tree::default()
        };
        let vanished = self.settling.vanished().filter_map(|name| self.path(name));
        let unsettled: BTreeSet<_> = vanished.chain(self.hidden(tree)).collect();
        let mut unsettled: Vec<_> = unsettled.into_iter().collect();
        let mut held = Vec::new();
        for entry in &tree.entries {
            let is_settled = self.settling.is_settled(&entry.name, now);
            let file = |index: FileIndex| tree.files.file(index).ok().cloned();
            let found = match &entry.found {
                Found::File(index) if is_settled => file(*index).map(|file| add(&mut view, file)),
                Found::File(index) => self.last_settled(entry, file(*index)).map(|file| {
                    held.extend(self.path(&entry.name));
                    add(&mut view, file)
                }),
                found @ Found::Link { .. } if !is_settled => self.last_link(entry, found),
                // A directory has no bytes that could be wrong.
                found => Some(found.clone()),
            };
            match found {
                Some(found) => view.entries.push(TreeEntry { found, ..entry.clone() }),
                None => unsettled.extend(self.path(&entry.name)),
            }
        }
        VersionFiles { tree: view, held, unsettled }
    }

    /// The path of a name at receivers.
    fn path(&self, name: &[u8]) -> Option<RelativePath> {
        RelativePath::new(self.send.name.as_deref().unwrap_or(name)).ok()
    }

    /// The file in the state of the last version, if that is a prefix of its present state.
    fn last_settled(&self, entry: &TreeEntry, now: Option<SourceFile>) -> Option<SourceFile> {
        let base = self.base.as_ref()?;
        let name = self.path(&entry.name)?;
        let before = base.file(&name)?;
        let (before_id, now_id) = (before.identity(), now?.identity());
        let may_have_grown = before_id.inode == now_id.inode && before_id.size <= now_id.size;
        (may_have_grown && base.verify(&name).is_ok()).then(|| before.clone())
    }

    /// A link in the state of the last version.
    fn last_link(&self, entry: &TreeEntry, now: &Found) -> Option<Found> {
        let State::Link(leads_to) = self.sent.as_ref()?.get(&entry.name)? else { return None };
        matches!(now, Found::Link { .. }).then(|| Found::Link { leads_to: leads_to.clone() })
    }

    /// Reports an error, unless its message is that of the last one.
    fn report(&mut self, error: Error, out: &Outbox) {
        let message = error.to_string();
        if self.last_error != message {
            self.last_error = message;
            let _ = out.note.send(Note::Failed(error));
        }
    }

    /// Reports names that have not settled for long.
    fn report_restless(&mut self, now: Instant, out: &Outbox) {
        for (path, since) in self.settling.moving(now) {
            if since >= RESTLESS_AFTER * self.settle
                && self.restless.len() < MOST_RESTLESS
                && self.restless.insert(path.clone())
            {
                let name = Printable(path).to_string();
                let _ = out.note.send(Note::Restless { name, since });
            }
        }
    }

    /// Waits until then, or until something may have changed. Then waits for `pause`, as changes
    /// come in groups, unless the time is up before.
    fn wait(&self, until: Instant, pause: Duration, out: &Outbox) {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.ended.is_cancelled() {
                return;
            }
            if out.news.recv_timeout(left.min(STOP_LATENCY)) == Ok(()) {
                std::thread::sleep(pause.min(until.saturating_duration_since(Instant::now())));
                return;
            }
        }
    }
}

/// Whether receivers would get the same from both.
fn is_same_content(last: &Manifest, content: &Content) -> bool {
    let now = &content.manifest;
    last.objects() == now.objects()
        && last.entries() == now.entries()
        && last.unsettled() == now.unsettled()
}

/// Adds a file to a view.
fn add(view: &mut Tree, file: SourceFile) -> Found {
    let files: &mut SourceFiles = &mut view.files;
    Found::File(files.add_known(file))
}
