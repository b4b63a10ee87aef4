//! A receiver that has joined its group.

use super::driver::{self, Reception, ReceptionResult};
use super::handle::{Commands, command_channel};
use super::into::ReceiveInto;
use super::mirrors::PreparedMirrors;
use super::options::ReceiveOptions;
use crate::addressing::Listening;
use crate::cancellation::CancellationToken;
use crate::error::{Error, SetupError};
use crate::event::ReceiveEvent;
use crate::kept_mark::{KeptMark, MarkUse};
use crate::memory;
use fontana_net::{BufferShortfall, ReceiveSocket};
use fontana_proto::MetadataMode;
use fontana_proto::report::Reporter;
use fontana_store::{Device, Memory, Selection, TargetDirectory};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "web")]
mod published;

/// Sockets that have joined their group before their reception begins. Meanwhile the kernel's
/// receive buffer holds the packets.
pub(crate) struct EarlySockets {
    listening: Listening,
    sockets: Vec<ReceiveSocket>,
    opened_at: Instant,
}

/// Longest time between the opening of early sockets and their reception: their receive buffers
/// would overflow.
const LONGEST_EARLY: Duration = Duration::from_secs(1);

impl EarlySockets {
    /// Opens the sockets of a reception, which joins the group.
    ///
    /// # Errors
    /// [`Error`] as for the reception.
    pub(crate) fn open(options: &ReceiveOptions) -> Result<Self, Error> {
        let sources = &options.expectation.sources;
        let listening = options.addressing.for_receiving(sources, options.receive_buffer)?;
        let sockets = ReceiveSocket::open_all(listening.base())?;
        Ok(Self { listening, sockets, opened_at: Instant::now() })
    }

    /// Whether the packets that have arrived since are of use.
    fn are_fresh(&self) -> bool {
        self.opened_at.elapsed() < LONGEST_EARLY
    }
}

/// What the reception of a version leaves to the next one.
#[derive(Default)]
pub(crate) struct Carried {
    /// Sockets that have joined the group already.
    pub(crate) sockets: Option<EarlySockets>,
    /// What reports.
    pub(crate) reporter: Option<Reporter>,
}

/// A receiver that has joined its group.
pub struct PreparedReceiver {
    reception: Reception,
    token: CancellationToken,
    /// Names of the interfaces on which the groups are joined.
    interfaces: Vec<String>,
}

impl PreparedReceiver {
    /// Opens the target directory and the socket, and joins the group. `token` ends the reception.
    pub(crate) fn open(options: ReceiveOptions, token: CancellationToken) -> Result<Self, Error> {
        Self::open_into(options, ReceiveInto::Directory, Carried::default(), token)
    }

    /// As [`open`](Self::open), after another version.
    pub(crate) fn open_next(
        options: ReceiveOptions,
        carried: Carried,
        token: CancellationToken,
    ) -> Result<Self, Error> {
        Self::open_into(options, ReceiveInto::Directory, carried, token)
    }

    fn open_into(
        mut options: ReceiveOptions,
        into: ReceiveInto,
        Carried { sockets, reporter }: Carried,
        token: CancellationToken,
    ) -> Result<Self, Error> {
        if options.memory < memory::MIN_MEMORY {
            return Err(SetupError::Range {
                what: "the memory in bytes",
                actual: options.memory as u64,
                allowed: "at least 32M",
            }
            .into());
        }
        let selection = Selection::new(&options.only)?;
        let directory = Arc::new(TargetDirectory::open(&options.directory)?);
        directory.check_writable()?;
        let use_of_mark = MarkUse { versions: options.versions, deletes: options.delete };
        let mark = KeptMark::open(&directory, options.expectation.publisher, use_of_mark)?;
        let newer_than = mark.as_ref().and_then(KeptMark::newer_than);
        options.expectation.newer_than = options.expectation.newer_than.max(newer_than);
        let mirrors = PreparedMirrors::new(&options);
        let interfaces = match options.has_group {
            true => options.addressing.interface_names()?,
            false => Vec::new(),
        };
        let sockets = match sockets.filter(EarlySockets::are_fresh) {
            Some(sockets) => Some(sockets),
            None => options.has_group.then(|| EarlySockets::open(&options)).transpose()?,
        };
        let (listening, sockets) = match sockets {
            Some(EarlySockets { listening, sockets, .. }) => (Some(listening), sockets),
            None => (None, Vec::new()),
        };
        let (handle, commands) = command_channel();
        let reception = Reception {
            options,
            sockets,
            listening,
            directory,
            selection,
            mark,
            handle,
            commands,
            into,
            mirrors,
            reporter,
        };
        Ok(Self { reception, token, interfaces })
    }

    /// As [`open`](Self::open), for a consumer.
    pub(crate) fn open_writer(
        options: ReceiveOptions,
        writer: Box<dyn Write + Send>,
        token: CancellationToken,
    ) -> Result<Self, Error> {
        Self::open_into(options, ReceiveInto::Writer(writer), Carried::default(), token)
    }

    /// As [`open`](Self::open), for a device, or a file that is written in place.
    pub(crate) fn open_device(
        options: ReceiveOptions,
        device: Device,
        token: CancellationToken,
    ) -> Result<Self, Error> {
        // Other sessions name files, and do not authenticate their bytes.
        let options = ReceiveOptions { metadata: MetadataMode::Manifest, ..options };
        Self::open_into(options, ReceiveInto::Device(device), Carried::default(), token)
    }

    /// As [`open`](Self::open), for memory.
    pub(crate) fn open_memory(
        options: ReceiveOptions,
        memory: Arc<dyn Memory>,
        token: CancellationToken,
    ) -> Result<Self, Error> {
        // Other sessions name files, and do not authenticate their bytes.
        let options = ReceiveOptions { metadata: MetadataMode::Manifest, ..options };
        Self::open_into(options, ReceiveInto::Memory(memory), Carried::default(), token)
    }

    pub(crate) fn commands(&self) -> Commands {
        self.reception.handle.clone()
    }

    pub(crate) fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Names of the interfaces that are listened on; none if there are only mirrors.
    pub fn interfaces(&self) -> &[String] {
        &self.interfaces
    }

    /// The receive buffer that the kernel gave, and the remedy, if it is less than was asked for.
    pub fn buffer_shortfall(&self) -> Option<&BufferShortfall> {
        self.reception.sockets.first()?.buffer_shortfall()
    }

    /// Receives on this thread until everything is on disk, nothing more can be done, the time is
    /// up, or `token` is cancelled.
    pub(crate) fn run(
        self,
        token: &CancellationToken,
        emit: &mut dyn FnMut(ReceiveEvent),
    ) -> Result<ReceptionResult, Error> {
        driver::run(self.reception, token, emit)
    }
}
