//! Raw Ethernet frames, without the protocols of this host (packet(7)).
//!
//! For an emulator between two interfaces. A [`FrameSocket`] receives every frame that arrives on
//! an interface, whatever its destination, and sends frames as if they came from there. It needs
//! root (`CAP_NET_RAW`) and Linux; elsewhere [`FrameSocket::open`] returns an error.
//!
//! Hosts on one machine leave checksums and segmentation to an interface that does neither. The
//! kernel describes this in a header (`PACKET_VNET_HDR`, the `virtio_net_hdr` of the virtio
//! specification, section 5.1.6), which stays with the [`Frame`]: if it is forwarded unchanged, a
//! checksum that is not computed yet is not an error.
//!
//! VLAN tags are lost, because the kernel stores them outside the frame.

use crate::interface::Interface;
use crate::receiver::set_receive_buffer;
use crate::sys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::Socket;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Bytes of the kernel's header in front of a frame: `struct virtio_net_hdr`.
const KERNEL_HEADER: usize = 10;

/// Offset of the kind of GSO batch: `gso_type`, 0 for a single packet.
const GSO_TYPE: usize = 1;

/// One byte more than the longest frame with the kernel's header: an IP packet of 65 535 bytes
/// after an Ethernet header. A frame that fills it was truncated.
const FRAME_ROOM: usize = KERNEL_HEADER + Frame::ETHERNET_HEADER + 65_535 + 1;

/// A tenth of a second at a gigabit per second, doubled, because the kernel charges small frames
/// more than their bytes.
const RECEIVE_BUFFER: usize = 24 << 20;

/// An Ethernet frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame(Box<[u8]>);

impl Frame {
    /// Bytes of the Ethernet header: two addresses and a type.
    pub const ETHERNET_HEADER: usize = 14;

    /// A frame from its bytes, with the Ethernet header, without the checksum at the end. It needs
    /// no further segmentation or checksum.
    pub fn new(bytes: &[u8]) -> Self {
        Self([&[0; KERNEL_HEADER], bytes].concat().into())
    }

    /// Its bytes, Ethernet header first.
    pub fn bytes(&self) -> &[u8] {
        self.0.get(KERNEL_HEADER..).unwrap_or_default()
    }

    /// Its bytes, Ethernet header first, to change them. Checksums are not updated.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.get_mut(KERNEL_HEADER..).unwrap_or_default()
    }

    /// True if it is a GSO batch: several packets that are segmented later, and are lost or
    /// forwarded together until then.
    pub fn is_gso_batch(&self) -> bool {
        // The flag of explicit congestion notification is not a kind.
        self.0.get(GSO_TYPE).is_some_and(|kind| kind & 0x7f != 0)
    }
}

/// A socket for all frames of one interface. Calls do not block.
#[derive(Debug)]
pub struct FrameSocket {
    socket: Socket,
    name: String,
    /// Buffer for the next frame, one byte longer than the longest frame.
    room: Vec<u8>,
    oversized: u64,
}

/// Why a frame socket cannot be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The process lacks the rights.
    #[error("all frames of {interface} are only for root")]
    NotPermitted {
        /// The interface.
        interface: String,
    },
    /// The interface was switched off or removed.
    #[error("{interface} went down")]
    Down {
        /// The interface.
        interface: String,
    },
    /// Another error of the system.
    #[error("raw socket on {interface}: {error}")]
    System {
        /// The interface.
        interface: String,
        /// The system's error.
        error: io::Error,
    },
}

impl FrameSocket {
    /// Receives the frames that arrive on an interface from now on, also those for other hosts, but
    /// not those that this host sends there.
    ///
    /// # Errors
    /// The process lacks the rights, or the system has no such sockets.
    pub fn open(interface: &Interface) -> Result<Self, FrameError> {
        let name = interface.name.clone();
        let open = || {
            let socket = sys::frame_socket(interface.index)?;
            set_receive_buffer(&socket, RECEIVE_BUFFER)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        match open() {
            Ok(socket) => Ok(Self { socket, name, room: vec![0; FRAME_ROOM], oversized: 0 }),
            Err(error) => Err(failed(name, error)),
        }
    }

    /// The next received frame; `None` if there is none.
    ///
    /// # Errors
    /// The interface went down.
    pub fn recv(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            match (&self.socket).read(&mut self.room) {
                Ok(length) if length == FRAME_ROOM => self.oversized += 1,
                Ok(length) => return Ok(self.room.get(..length).map(|bytes| Frame(bytes.into()))),
                Err(error) if is_for_later(&error) => return Ok(None),
                Err(error) => return Err(failed(self.name.clone(), error)),
            }
        }
    }

    /// Sends a frame. `false` if the interface rejected it, because its queue was full or the frame
    /// was too long.
    ///
    /// # Errors
    /// The interface went down.
    pub fn send(&self, frame: &Frame) -> Result<bool, FrameError> {
        match (&self.socket).write(&frame.0) {
            Ok(_) => Ok(true),
            Err(error) if is_for_later(&error) => Ok(false),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOBUFS | Errno::MSGSIZE | Errno::INVAL) => Ok(false),
                _ => Err(failed(self.name.clone(), error)),
            },
        }
    }

    /// Frames that arrived and were lost: the kernel's receive buffer was full, or they were too
    /// long.
    pub fn drops(&self) -> u64 {
        u64::from(sys::receive_drops(&self.socket).unwrap_or(0)) + self.oversized
    }

    /// Waits until a frame has arrived at one of `sockets`, `timeout` is over, or a signal arrives.
    ///
    /// # Errors
    /// An error of the system.
    pub fn wait(sockets: &[Self], timeout: Duration) -> io::Result<()> {
        let mut wanted: Vec<_> =
            sockets.iter().map(|one| PollFd::new(&one.socket, PollFlags::IN)).collect();
        // Nanoseconds below a second fit any type.
        let nanos = i64::from(timeout.subsec_nanos()) as _;
        let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
        match poll(&mut wanted, Some(&Timespec { tv_sec: seconds, tv_nsec: nanos })) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn failed(interface: String, error: io::Error) -> FrameError {
    match Errno::from_io_error(&error) {
        Some(Errno::PERM | Errno::ACCESS) => FrameError::NotPermitted { interface },
        Some(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => FrameError::Down { interface },
        _ => FrameError::System { interface, error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_the_bytes_it_was_made_of() {
        let frame = Frame::new(b"frame");
        assert_eq!(frame.bytes(), b"frame");
        assert!(!frame.is_gso_batch());
        assert_eq!(Frame::new(&[]).bytes(), b"");
    }

    #[test]
    fn gso_batches_are_distinguished_from_packets_with_congestion_notification() {
        for (kind, is_gso_batch) in [(0, false), (1, true), (5, true), (0x80, false), (0x81, true)]
        {
            let mut frame = Frame::new(b"frame");
            frame.0[GSO_TYPE] = kind;
            assert_eq!(frame.is_gso_batch(), is_gso_batch, "{kind}");
        }
    }

    #[test]
    fn input_that_is_no_frame_is_empty() {
        let cut = Frame([0; KERNEL_HEADER - 1].into());
        assert_eq!(cut.bytes(), b"");
        assert!(!Frame([].into()).is_gso_batch());
    }
}
