//! A receiver that has joined its group.

use super::driver::{self, Reception};
use super::event::ReceiveEvent;
use super::handle::{ReceiveHandle, command_channel};
use super::into::ReceiveInto;
use super::options::ReceiveOptions;
use super::summary::ReceiveSummary;
use crate::error::{Error, SetupError};
use crate::memory;
use crate::stop::Stop;
use crate::watch::kept_mark::KeptMark;
use fontana_net::{BufferShortfall, ReceiveSocket};
use fontana_proto::MetadataMode;
use fontana_store::{Device, Selection, TargetDirectory};
use std::io::Write;
use std::sync::Arc;

/// A receiver that has joined its group.
pub struct ReceiveSession {
    reception: Reception,
    interface: String,
}

impl ReceiveSession {
    /// Opens the target directory and the socket, and joins the group.
    ///
    /// # Errors
    /// [`Error`]. Then nothing has changed, except that the target directory may have been created.
    pub fn open(options: ReceiveOptions) -> Result<Self, Error> {
        Self::open_into(options, ReceiveInto::Directory)
    }

    fn open_into(mut options: ReceiveOptions, into: ReceiveInto) -> Result<Self, Error> {
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
        let mark = KeptMark::open(&directory, options.expectation.publisher, options.versions)?;
        let newer_than = mark.as_ref().and_then(KeptMark::newer_than);
        options.expectation.newer_than = options.expectation.newer_than.max(newer_than);
        let sources = &options.expectation.sources;
        let listening = options.reach.for_receiving(sources, options.receive_buffer)?;
        let interface = options.reach.interface()?.name;
        let sockets = ReceiveSocket::open_all(listening.base())?;
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
        };
        Ok(Self { reception, interface })
    }

    /// As [`open`](Self::open), for a consumer: the verified bytes of a stream, or of the one file
    /// of a session, are written to `writer` in order. A thread of its own writes, which may block,
    /// and flushes at the end. The options' directory holds what is not written yet, without a
    /// name.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_writer(
        options: ReceiveOptions,
        writer: impl Write + Send + 'static,
    ) -> Result<Self, Error> {
        Self::open_into(options, ReceiveInto::Writer(Box::new(writer)))
    }

    /// As [`open`](Self::open), for a device, or a file that is written in place. It takes a
    /// stream, or the one file of a session, each symbol of which is written to its final place at
    /// once. Success is reported after all of it was read back. The options' directory holds repair
    /// symbols, and what a later run resumes.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_device(options: ReceiveOptions, device: Device) -> Result<Self, Error> {
        // Other sessions name files, and do not authenticate their bytes.
        let options = ReceiveOptions { metadata: MetadataMode::Manifest, ..options };
        Self::open_into(options, ReceiveInto::Device(device))
    }

    /// A handle that accepts sessions while [`run`](Self::run) occupies this thread.
    pub fn handle(&self) -> ReceiveHandle {
        self.reception.handle.clone()
    }

    /// Name of the interface that is listened on.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The receive buffer that the kernel gave, and the remedy, if it is less than was asked for.
    pub fn buffer_shortfall(&self) -> Option<&BufferShortfall> {
        self.reception.sockets.first()?.buffer_shortfall()
    }

    /// Receives until everything is on disk, nothing more can be done, the time is up, or `stop` is
    /// set.
    ///
    /// # Errors
    /// [`Error`] if the network or the system fails; the summary lists objects that failed.
    pub fn run(
        self,
        stop: &Stop,
        observe: &mut dyn FnMut(ReceiveEvent<'_>),
    ) -> Result<ReceiveSummary, Error> {
        driver::run(self.reception, stop, observe)
    }
}
