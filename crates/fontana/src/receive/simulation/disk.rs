//! A disk that fails calls, and that knows what a power failure loses.
//!
//! It makes the calls on a directory of the host, so that names, flags and permissions mean what
//! they mean there. Beside that, [`Media`] records what is on the disk.

use super::media::{FileChange, Inode, Media, Name, Node};
use crossbeam_channel::{Receiver, Sender};
use fontana_proto::SplitMix64;
use fontana_store::{BootId, Disk, Errno, HostDisk};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, Stat, Timestamps};
use rustix::io::Result;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::thread::ThreadId;

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Call {
    Open,
    Create,
    Stat,
    Read,
    /// Of the bytes of a file.
    Write,
    /// Of repair symbols.
    WriteSpool,
    /// Of a file without a name: early symbols.
    CreateUnnamed,
    WriteUnnamed,
    ReadUnnamed,
    Append,
    SetLength,
    Reserve,
    Punch,
    SetMode,
    SetTimes,
    Sync,
    SyncData,
    SyncDirectory,
    SyncFileSystem,
    MakeDirectory,
    MakeLink,
    Rename,
    Unlink,
    RemoveDirectory,
}

impl Call {
    /// Whether a crash before it and one after it may leave different disks.
    fn is_boundary(self) -> bool {
        !matches!(self, Self::Open | Self::Stat | Self::Read | Self::ReadUnnamed)
    }
}

/// What a failing call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misbehavior {
    /// Nothing, and it returns this error.
    Error(Errno),
    /// It reads or writes half of the bytes, and says so.
    Short,
    /// It writes the bytes at the beginning of the file instead, and reports success.
    Misdirected,
}

/// Calls that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) call: Call,
    pub(super) how: Misbehavior,
    /// The number of such calls that succeed before.
    pub(super) after: u64,
    /// Whether all later calls of the kind fail, too.
    pub(super) lasts: bool,
}

/// The disk.
#[derive(Debug)]
pub(super) struct SimulatedDisk {
    state: Mutex<State>,
    pause: Mutex<Option<Pause>>,
}

#[derive(Debug)]
struct State {
    media: Media,
    boot: BootId,
    fault: Option<Fault>,
    has_failed: bool,
    /// Calls of each kind in this run.
    calls: BTreeMap<Call, u64>,
    /// Boundaries that this run has passed.
    boundaries: u64,
    /// The boundary at which the process ends, and whether it does so within a write.
    crash: Option<Crash>,
    /// The process has ended: calls fail and change nothing.
    is_over: bool,
}

/// The end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crash {
    /// The number of boundaries before it.
    pub(super) after: u64,
    /// Whether half of the call is done, if it writes.
    pub(super) tears: bool,
}

/// A thread whose syncs wait.
#[derive(Debug)]
pub(super) struct Pause {
    pub(super) thread: ThreadId,
    /// Where it reports that it waits.
    pub(super) waits: Sender<()>,
    /// When it goes on.
    pub(super) resume: Receiver<()>,
}

/// How much of a call is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Portion {
    All,
    Half,
    Elsewhere,
}

impl SimulatedDisk {
    /// The disk with a directory of the host, all of which is synced.
    pub(super) fn new(root: &Path, boot: u8) -> Self {
        let state = State {
            media: Media::read(root),
            boot: BootId([boot; 16]),
            fault: None,
            has_failed: false,
            calls: BTreeMap::new(),
            boundaries: 0,
            crash: None,
            is_over: false,
        };
        Self { state: Mutex::new(state), pause: Mutex::new(None) }
    }

    /// Begins a run of the receiver.
    pub(super) fn begin_run(&self, crash: Option<Crash>, fault: Option<Fault>) {
        let mut state = self.state.lock().unwrap();
        (state.crash, state.fault) = (crash, fault);
        (state.calls, state.boundaries) = (BTreeMap::new(), 0);
        (state.has_failed, state.is_over) = (false, false);
    }

    /// Ends the process that uses the disk.
    pub(super) fn end_run(&self) {
        self.state.lock().unwrap().is_over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.lock().unwrap().is_over
    }

    /// Calls of a kind in this run.
    pub(super) fn calls(&self, call: Call) -> u64 {
        self.state.lock().unwrap().calls.get(&call).copied().unwrap_or(0)
    }

    /// Whether a call has failed in this run.
    pub(super) fn has_failed(&self) -> bool {
        self.state.lock().unwrap().has_failed
    }

    /// Boundaries of this run.
    pub(super) fn boundaries(&self) -> u64 {
        self.state.lock().unwrap().boundaries
    }

    pub(super) fn pause(&self, pause: Option<Pause>) {
        *self.pause.lock().unwrap() = pause;
    }

    /// Writes what a power failure leaves now to an empty directory of the host. The disk is of no
    /// use afterwards.
    pub(super) fn lose_power(&self, random: &mut SplitMix64, root: &Path) {
        let media = std::mem::take(&mut self.state.lock().unwrap().media);
        media.lose_power(random, root);
    }

    /// Makes a call that the process survives, if it does, and records what it changes.
    fn make<T>(
        &self,
        call: Call,
        host: impl FnOnce(Portion) -> Result<T>,
        record: impl FnOnce(&mut Media, &T),
    ) -> Result<T> {
        let mut state = self.state.lock().unwrap();
        let portion = state.begin(call)?;
        let done = host(portion)?;
        record(&mut state.media, &done);
        Ok(done)
    }

    /// Waits if the syncs of this thread wait.
    fn pause_here(&self) {
        let guard = self.pause.lock().unwrap();
        let Some(pause) = guard.as_ref().filter(|p| p.thread == std::thread::current().id()) else {
            return;
        };
        let (waits, resume) = (pause.waits.clone(), pause.resume.clone());
        drop(guard);
        if waits.send(()).is_ok() {
            let _ = resume.recv();
        }
    }
}

impl State {
    fn begin(&mut self, call: Call) -> Result<Portion> {
        if self.is_over {
            return Err(Errno::IO);
        }
        if call.is_boundary() {
            if let Some(crash) = self.crash.filter(|crash| crash.after == self.boundaries) {
                self.is_over = true;
                let writes = matches!(
                    call,
                    Call::Write | Call::WriteSpool | Call::WriteUnnamed | Call::Append
                );
                return if crash.tears && writes { Ok(Portion::Half) } else { Err(Errno::IO) };
            }
            self.boundaries += 1;
        }
        let count = self.calls.entry(call).or_default();
        *count += 1;
        let is_due = |fault: &Fault| {
            let number = *count - 1;
            fault.call == call && (number == fault.after || fault.lasts && number > fault.after)
        };
        let how = self.fault.filter(is_due).map(|fault| fault.how);
        self.has_failed |= how.is_some();
        match how {
            None => Ok(Portion::All),
            Some(Misbehavior::Error(errno)) => Err(errno),
            Some(Misbehavior::Short) => Ok(Portion::Half),
            Some(Misbehavior::Misdirected) => Ok(Portion::Elsewhere),
        }
    }
}

fn inode(file: BorrowedFd<'_>) -> Inode {
    let stat = HostDisk.stat(file).unwrap();
    (stat.st_dev, stat.st_ino)
}

fn node(media: &Media, file: BorrowedFd<'_>) -> Node {
    media.node(inode(file))
}

fn name_in(media: &Media, directory: BorrowedFd<'_>, name: &[u8]) -> Name {
    Name { directory: node(media, directory), name: name.to_vec() }
}

/// The part of `bytes` that is written.
fn part(bytes: &[u8], portion: Portion) -> &[u8] {
    match portion {
        Portion::All | Portion::Elsewhere => bytes,
        Portion::Half => &bytes[..bytes.len() / 2],
    }
}

impl Disk for SimulatedDisk {
    fn boot(&self) -> BootId {
        self.state.lock().unwrap().boot
    }

    fn open(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd> {
        let is_unnamed = flags.contains(OFlags::TMPFILE);
        let is_new = is_unnamed
            || flags.contains(OFlags::CREATE) && HostDisk.stat_at(directory, name).is_err();
        let call = match (is_unnamed, is_new) {
            (true, _) => Call::CreateUnnamed,
            (false, true) => Call::Create,
            (false, false) => Call::Open,
        };
        let host = |_| HostDisk.open(directory, name, flags, mode);
        self.make(call, host, |media, file| {
            if is_unnamed {
                media.add_unnamed(inode(file.as_fd()));
            } else if is_new {
                media.add_file(name_in(media, directory, name), inode(file.as_fd()));
            } else if flags.contains(OFlags::TRUNC) {
                media.change(node(media, file.as_fd()), FileChange::Length(0));
            }
        })
    }

    fn stat(&self, file: BorrowedFd<'_>) -> Result<Stat> {
        self.make(Call::Stat, |_| HostDisk.stat(file), |_, _| ())
    }

    fn stat_at(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<Stat> {
        self.make(Call::Stat, |_| HostDisk.stat_at(directory, name), |_, _| ())
    }

    fn available(&self, _file: BorrowedFd<'_>) -> Option<u64> {
        Some(u64::MAX)
    }

    fn read(&self, file: BorrowedFd<'_>, out: &mut [u8], offset: u64) -> Result<usize> {
        let host = |portion| match portion {
            Portion::Half => {
                let half = out.len() / 2;
                HostDisk.read(file, &mut out[..half], offset)
            }
            Portion::All | Portion::Elsewhere => HostDisk.read(file, out, offset),
        };
        let is_unnamed = {
            let media = &self.state.lock().unwrap().media;
            media.is_unnamed(node(media, file))
        };
        let call = if is_unnamed { Call::ReadUnnamed } else { Call::Read };
        self.make(call, host, |_, _| ())
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize> {
        let host = |portion| {
            let at = if portion == Portion::Elsewhere { 0 } else { offset };
            let bytes = part(bytes, portion);
            HostDisk.write_all(file, bytes, at).map(|()| (at, bytes))
        };
        let (is_spool, is_unnamed) = {
            let media = &self.state.lock().unwrap().media;
            let node = node(media, file);
            (media.is_spool(node), media.is_unnamed(node))
        };
        let call = match (is_spool, is_unnamed) {
            (true, _) => Call::WriteSpool,
            (false, true) => Call::WriteUnnamed,
            (false, false) => Call::Write,
        };
        let written = self.make(call, host, |media, &(at, bytes)| {
            media.change(node(media, file), FileChange::Write { at, bytes: bytes.to_vec() });
        });
        written.map(|(_, bytes)| bytes.len())
    }

    fn append(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
        let at = HostDisk.stat(file)?.st_size as u64;
        let host = |portion| HostDisk.append(file, part(bytes, portion));
        self.make(Call::Append, host, |media, &count| {
            let bytes = bytes[..count].to_vec();
            media.change(node(media, file), FileChange::Write { at, bytes });
        })
    }

    fn set_length(&self, file: BorrowedFd<'_>, length: u64) -> Result<()> {
        let host = |_| HostDisk.set_length(file, length);
        self.make(Call::SetLength, host, |media, ()| {
            media.change(node(media, file), FileChange::Length(length));
        })
    }

    fn reserve(&self, file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()> {
        self.make(Call::Reserve, |_| HostDisk.reserve(file, offset, length), |_, ()| ())
    }

    fn punch(&self, file: BorrowedFd<'_>, at: u64, length: u64) -> Result<()> {
        let host = |_| HostDisk.punch(file, at, length);
        self.make(Call::Punch, host, |media, ()| {
            media.change(node(media, file), FileChange::Punch { at, length });
        })
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: Mode) -> Result<()> {
        self.make(Call::SetMode, |_| HostDisk.set_mode(file, mode), |_, ()| ())
    }

    fn set_times(&self, file: BorrowedFd<'_>, times: &Timestamps) -> Result<()> {
        self.make(Call::SetTimes, |_| HostDisk.set_times(file, times), |_, ()| ())
    }

    fn set_times_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        times: &Timestamps,
    ) -> Result<()> {
        let host = |_| HostDisk.set_times_at(directory, name, times);
        self.make(Call::SetTimes, host, |_, ()| ())
    }

    fn sync(&self, file: BorrowedFd<'_>) -> Result<()> {
        let sync = |media: &mut Media, (): &()| media.sync_file(node(media, file));
        self.make(Call::Sync, |_| Ok(()), sync)?;
        self.pause_here();
        Ok(())
    }

    fn sync_data(&self, file: BorrowedFd<'_>) -> Result<()> {
        let sync = |media: &mut Media, (): &()| media.sync_file(node(media, file));
        self.make(Call::SyncData, |_| Ok(()), sync)?;
        self.pause_here();
        Ok(())
    }

    fn sync_directory(&self, directory: BorrowedFd<'_>) -> Result<()> {
        let sync = |media: &mut Media, (): &()| media.sync_directory(node(media, directory));
        self.make(Call::SyncDirectory, |_| Ok(()), sync)?;
        self.pause_here();
        Ok(())
    }

    fn sync_file_system(&self, _file: BorrowedFd<'_>) -> Result<()> {
        self.make(Call::SyncFileSystem, |_| Ok(()), |media, ()| media.sync_all())?;
        self.pause_here();
        Ok(())
    }

    fn reports_lost_writes(&self) -> bool {
        true
    }

    fn make_directory(&self, directory: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<()> {
        let host = |_| HostDisk.make_directory(directory, name, mode);
        self.make(Call::MakeDirectory, host, |media, ()| {
            let stat = HostDisk.stat_at(directory, name).unwrap();
            let name = name_in(media, directory, name);
            media.add_empty_directory(name, (stat.st_dev, stat.st_ino));
        })
    }

    fn make_link(&self, leads_to: &[u8], directory: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        let host = |_| HostDisk.make_link(leads_to, directory, name);
        self.make(Call::MakeLink, host, |media, ()| {
            let stat = HostDisk.stat_at(directory, name).unwrap();
            let name = name_in(media, directory, name);
            media.add_link(name, leads_to.to_vec(), (stat.st_dev, stat.st_ino));
        })
    }

    fn rename(
        &self,
        from: BorrowedFd<'_>,
        old: &[u8],
        to: BorrowedFd<'_>,
        new: &[u8],
    ) -> Result<()> {
        let host = |_| HostDisk.rename(from, old, to, new);
        self.make(Call::Rename, host, |media, ()| record_rename(media, from, old, to, new))
    }

    fn rename_to_free(
        &self,
        from: BorrowedFd<'_>,
        old: &[u8],
        to: BorrowedFd<'_>,
        new: &[u8],
    ) -> Result<()> {
        let host = |_| HostDisk.rename_to_free(from, old, to, new);
        self.make(Call::Rename, host, |media, ()| record_rename(media, from, old, to, new))
    }

    fn unlink(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        self.make(
            Call::Unlink,
            |_| HostDisk.unlink(directory, name),
            |media, ()| {
                media.remove(name_in(media, directory, name));
            },
        )
    }

    fn remove_directory(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        let host = |_| HostDisk.remove_directory(directory, name);
        self.make(Call::RemoveDirectory, host, |media, ()| {
            media.remove(name_in(media, directory, name));
        })
    }
}

fn record_rename(
    media: &mut Media,
    from: BorrowedFd<'_>,
    old: &[u8],
    to: BorrowedFd<'_>,
    new: &[u8],
) {
    let stat = HostDisk.stat_at(to, new).unwrap();
    let node = media.node((stat.st_dev, stat.st_ino));
    let (old, new) = (name_in(media, from, old), name_in(media, to, new));
    media.rename(old, new, node);
}
