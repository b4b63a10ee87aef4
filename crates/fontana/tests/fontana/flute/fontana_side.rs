//! Fontana's side of a transfer, and what both directions share.

use fontana::{
    Addressing, FluteFormat, FluteReception, Format, PreparedReceiver, Rate, ReceiveEvent,
    ReceiveFormat, ReceiveReport, Receiver, ReceiverBuilder, Sender, SenderBuilder, TableWarning,
};
pub(crate) use fontana_testing::noise;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) const MIB: usize = 1 << 20;
/// No byte, less than a symbol, one block, many blocks.
pub(crate) const SIZES: [usize; 4] = [0, 1, MIB, 50 * MIB];
/// Slow enough for one processor that sends, receives and decodes at the same time.
pub(crate) const RATE_BYTES_PER_SECOND: u64 = 20_000_000;

/// A lock that allows one transfer at a time, so that datagrams are lost only on purpose.
pub(crate) fn air() -> MutexGuard<'static, ()> {
    static AIR: Mutex<()> = Mutex::new(());
    AIR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A group and port that no other test of this machine uses.
pub(crate) fn addressing() -> Addressing {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let group = Ipv4Addr::new(239, 255, 92, NEXT.fetch_add(1, Ordering::Relaxed));
    let port = 20_000 + (std::process::id() % 20_000) as u16;
    let mut addressing = Addressing::to(SocketAddr::from((group, port)));
    addressing.interfaces = vec!["127.0.0.1".parse().unwrap()];
    addressing
}

/// Bytes that can be compressed well.
pub(crate) fn text(bytes: usize) -> Vec<u8> {
    let line = |number: usize| format!("{number}: all the world's a stage\n").into_bytes();
    (0..).flat_map(line).take(bytes).collect()
}

/// Loses datagrams: each with the same probability, and the same ones in every run of the test.
pub(crate) struct Losing {
    state: u64,
    permille: u64,
}

impl Losing {
    pub(crate) fn permille(permille: u64) -> Self {
        Self { state: 0x2545_F491_4F6C_DD1D, permille }
    }

    pub(crate) fn loses_one(&mut self) -> bool {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % 1000 < self.permille
    }
}

/// Files by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn files_of(sizes: &[usize]) -> Files {
    let name = |size: &usize| format!("file of {size} bytes");
    sizes.iter().map(|size| (name(size), noise(*size, *size as u64))).collect()
}

/// Writes files into a directory and directories below it. Returns the paths for a sender.
pub(crate) fn write(files: &Files, directory: &Path) -> Vec<PathBuf> {
    let write = |(name, bytes): (&String, &Vec<u8>)| {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        directory.join(name.split('/').next().unwrap())
    };
    let mut paths: Vec<_> = files.iter().map(write).collect();
    paths.dedup();
    paths
}

/// Every file in a directory and below it, staging included.
pub(crate) fn read(directory: &Path) -> Files {
    let mut files = Files::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(here) = waiting.pop() {
        for entry in std::fs::read_dir(&here).unwrap().map(Result::unwrap) {
            let path = entry.path();
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => waiting.push(path),
                kind if kind.is_file() => {
                    let name = path.strip_prefix(directory).unwrap().to_str().unwrap();
                    files.insert(name.to_owned(), std::fs::read(&path).unwrap());
                }
                _ => {}
            }
        }
    }
    files
}

/// Compares without printing megabytes.
#[track_caller]
pub(crate) fn assert_same(actual: &Files, expected: &Files) {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(actual), names(expected));
    for (name, bytes) in expected {
        assert!(actual[name] == *bytes, "{name:?} arrived with other bytes");
    }
}

/// A sender of plain FLUTE that runs until it is stopped.
pub(crate) struct FontanaSender(Option<Sender>);

impl FontanaSender {
    pub(crate) fn start(
        addressing: &Addressing,
        files: Vec<PathBuf>,
        change: impl FnOnce(SenderBuilder) -> SenderBuilder,
    ) -> Self {
        let options = Sender::builder(files)
            .addressing(addressing.clone())
            .format(Format::Flute(FluteFormat::default()))
            .rate(Rate::bytes_per_second(RATE_BYTES_PER_SECOND))
            .seed(1)
            .tsi(Some(fontana::wire::Tsi(super::peer::TSI)));
        Self(Some(change(options).start().unwrap()))
    }

    pub(crate) fn handle(&self) -> &Sender {
        self.0.as_ref().unwrap()
    }
}

impl Drop for FontanaSender {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            sender.stop();
            sender.join().unwrap();
        }
    }
}

/// The result of a reception.
pub(crate) struct Received {
    pub(crate) summary: ReceiveReport,
    /// The content of the target directory afterwards.
    pub(crate) files: Files,
    /// Names of objects that were given up.
    pub(crate) failed: Vec<String>,
    pub(crate) warnings: Vec<TableWarning>,
    /// Names of files that were replaced by newer versions.
    pub(crate) updates: Vec<String>,
    _target: tempfile::TempDir,
}

/// A receiver of plain FLUTE that has joined its group.
pub(crate) struct FontanaReceiver {
    receiver: PreparedReceiver,
    target: tempfile::TempDir,
}

impl FontanaReceiver {
    pub(crate) fn join(
        addressing: &Addressing,
        change: impl FnOnce(ReceiverBuilder) -> ReceiverBuilder,
    ) -> Self {
        let target = tempfile::tempdir().unwrap();
        let options = Receiver::builder()
            .into_dir(target.path())
            .addressing(addressing.clone())
            .format(ReceiveFormat::Flute(FluteReception::default()))
            .timeout(Some(Duration::from_secs(60)));
        Self { receiver: change(options).prepare().unwrap(), target }
    }

    pub(crate) fn target(&self) -> &Path {
        self.target.path()
    }

    /// Receives until it is over.
    pub(crate) fn run(self) -> Received {
        self.run_with(|_| ())
    }

    /// Receives until it is over, and shows each event.
    pub(crate) fn run_with(self, mut show: impl FnMut(&ReceiveEvent)) -> Received {
        self.run_until(|event, _| show(event))
    }

    /// Receives until it is over, and shows each event, with the receiver.
    pub(crate) fn run_until(self, mut show: impl FnMut(&ReceiveEvent, &Receiver)) -> Received {
        let receiver = self.receiver.start().unwrap();
        let (mut failed, mut warnings, mut updates) = (Vec::new(), Vec::new(), Vec::new());
        for event in receiver.events() {
            show(&event, &receiver);
            match event {
                ReceiveEvent::FileUpdated { name, .. } => updates.push(name),
                ReceiveEvent::ObjectFailed { names, .. } => failed.extend(names),
                ReceiveEvent::TableWarning(warning) => warnings.push(warning),
                _ => {}
            }
        }
        let summary = receiver.join().unwrap();
        let files = read(self.target.path());
        Received { summary, files, failed, warnings, updates, _target: self.target }
    }
}
