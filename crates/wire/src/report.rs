//! Receiver reports: what a receiver that was asked in a [roll call](crate::RollCall) says of
//! itself, in a [datagram](crate::feedback) to the collector of a session.
//!
//! ```text
//! offset  bytes
//!     41      4  round of the roll call
//!     45      8  serial number of the last roll call that it has received
//!     53      4  microseconds since it has arrived
//!     57      8  start of the receiver, unix milliseconds
//!     65      1  state: 0 = receiving, 1 = complete, 2 = failed
//!     66      1  exit code if it has failed, otherwise 0
//!     67      2  symbols that it has of those that it needs, per thousand
//!     69      8  symbols that it lacks
//!     77      4  packets lost, per million
//!     81      8  datagrams that its kernel dropped
//!     89      1  channels that it is joined to
//!     90      4  seconds since its start
//!     94      1  bytes of its label
//!     95      l  label
//!   95+l     32  hash of the manifest, if it is complete; of a stream, the hash that stands for it
//! ```

use crate::bytes::Reader;
use crate::feedback::echo::RollCallEcho;
use crate::feedback::error::FeedbackError;
use crate::hash::{Hash, whole_stream_hash};
use crate::head::InstanceId;
use crate::receiver_id::{ReceiverId, ReceiverLabel};

/// Bytes of a label and of a manifest hash, both absent, and of all other fields.
const LEAST_BYTES: usize = 54;

/// How far a receiver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverState {
    /// It receives.
    Receiving,
    /// Everything that this manifest describes, or the selected part of it, is on disk and
    /// verified.
    Complete {
        /// Hash of the manifest; of a stream [`whole_stream`](Self::whole_stream).
        manifest: Hash,
    },
    /// It has ended otherwise.
    Failed {
        /// The exit code of the program.
        exit_code: u8,
    },
}

impl ReceiverState {
    /// What a receiver that has all of a stream reports in place of a manifest's hash: it names the
    /// run of the sender. Each fragment was verified by the index, which is signed.
    pub fn whole_stream(instance: InstanceId) -> Hash {
        whole_stream_hash(&instance.0)
    }

    /// True if the receiver will not change its state.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Receiving)
    }
}

/// What a receiver says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverReport {
    /// The process.
    pub receiver: ReceiverId,
    /// Its name.
    pub label: ReceiverLabel,
    /// Start of the process, in unix milliseconds. Of two processes that sign with one key, the
    /// later one counts.
    pub started_unix_ms: u64,
    /// The round of the roll call that it answers.
    pub round: u32,
    /// The last roll call that it has received.
    pub echo: RollCallEcho,
    /// How far it is.
    pub state: ReceiverState,
    /// Symbols that it has of those that it needs, per thousand.
    pub permille: u16,
    /// Symbols that it lacks; 0 before it knows the content, and when it has all of them.
    pub symbols_lacking: u64,
    /// Packets lost of those sent on its channels, per million.
    pub loss_ppm: u32,
    /// Datagrams that its host dropped: full buffers of the kernel, or of the program.
    pub kernel_drops: u64,
    /// Channels that it is joined to.
    pub channels: u8,
    /// Seconds since the process started.
    pub seconds: u32,
}

impl ReceiverReport {
    /// Most bytes of a report.
    pub(crate) const MAX_BODY: usize = LEAST_BYTES + ReceiverLabel::MAX_SIZE + Hash::SIZE;

    pub(crate) fn emit_body(&self, out: &mut Vec<u8>) {
        out.extend(self.round.to_be_bytes());
        self.echo.emit(out);
        out.extend(self.started_unix_ms.to_be_bytes());
        let (state, exit_code) = match self.state {
            ReceiverState::Receiving => (0, 0),
            ReceiverState::Complete { .. } => (1, 0),
            ReceiverState::Failed { exit_code } => (2, exit_code),
        };
        out.extend([state, exit_code]);
        out.extend(self.permille.to_be_bytes());
        out.extend(self.symbols_lacking.to_be_bytes());
        out.extend(self.loss_ppm.to_be_bytes());
        out.extend(self.kernel_drops.to_be_bytes());
        out.push(self.channels);
        out.extend(self.seconds.to_be_bytes());
        out.push(self.label.as_str().len() as u8);
        out.extend(self.label.as_str().as_bytes());
        if let ReceiverState::Complete { manifest } = self.state {
            out.extend(manifest.0);
        }
    }
    /// `None` if the bytes end too early.
    pub(crate) fn read_body(
        receiver: ReceiverId,
        reader: &mut Reader<'_>,
    ) -> Option<Result<Self, FeedbackError>> {
        let round = reader.u32()?;
        let echo = RollCallEcho::read(reader)?;
        let started_unix_ms = reader.u64()?;
        let (state, exit_code) = (reader.u8()?, reader.u8()?);
        let permille = reader.u16()?;
        let symbols_lacking = reader.u64()?;
        let loss_ppm = reader.u32()?;
        let kernel_drops = reader.u64()?;
        let (channels, seconds) = (reader.u8()?, reader.u32()?);
        let length = reader.u8()?;
        let label = reader.take(length.into())?;
        let state = match (state, exit_code) {
            (0, 0) => ReceiverState::Receiving,
            (1, 0) => ReceiverState::Complete { manifest: Hash(reader.array()?) },
            (2, exit_code) => ReceiverState::Failed { exit_code },
            (state, _) => return Some(Err(FeedbackError::State(state))),
        };
        let label = match ReceiverLabel::from_bytes(label) {
            Ok(label) => label,
            Err(error) => return Some(Err(error.into())),
        };
        if permille > 1000 || loss_ppm > 1_000_000 {
            return Some(Err(FeedbackError::Share));
        }
        Some(Ok(Self {
            receiver,
            label,
            started_unix_ms,
            round,
            echo,
            state,
            permille,
            symbols_lacking,
            loss_ppm,
            kernel_drops,
            channels,
            seconds,
        }))
    }
}
