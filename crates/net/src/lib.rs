//! The real network of Fontana: one-way multicast, broadcast and unicast fan-out over UDP.
//!
//! The protocol state machines decide *what* is sent and *when*; this crate owns the sockets, the
//! receive thread and the only real clock. It knows nothing of the protocol: it moves datagrams.
//!
//! | module | what it is for |
//! |---|---|
//! | [`clock`] | nanoseconds since the run began; sleeping until a moment; waits that can be cut short |
//! | [`interface`] | listing network interfaces and choosing one by name, address or network |
//! | [`group`] | which multicast groups may carry a session |
//! | [`mtu`] | from an interface's MTU to the symbol size |
//! | [`sender`] | sending trains of equal datagrams with segmentation offload |
//! | [`receiver`] | joining, receiving in batches, counting what the kernel dropped |
//! | [`membership`] | joining and leaving while another thread receives |
//! | [`channels`] | the sockets of a session's channels, which come and go |
//! | [`rx_thread`] | a thread that drains the sockets and never waits for its consumer |
//! | [`frames`] | Ethernet frames past this host's protocols, for relays |
//! | [`thread`] | threads with names, whose start may fail |
//! | [`namespace`] | networks of this process's own, for hosts that are threads |
//! | [`doctor`] | does multicast work here, and if not, what to do |
//!
//! Linux is the system this is made for. On other Unix systems the crate is meant to compile and
//! work with less: no segmentation offload, no drop counter ([`ReceiveSocket::drops`] stays 0),
//! interface MTU assumed. Each of these is said where it happens.
//!
//! ```no_run
//! use std::net::{Ipv4Addr, SocketAddr};
//! use std::time::Duration;
//! use fontana_net::{Batch, ChannelAddress, Interfaces, ReceiveConfig, ReceiveSocket, SendConfig, SendSocket};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let group = Ipv4Addr::new(239, 255, 77, 1);
//! let interfaces = Interfaces::list()?;
//! let interface = interfaces.select(&"lo".parse()?)?;
//!
//! let mut receiver = ReceiveSocket::open(&ReceiveConfig::multicast(group.into(), 7701, interface))?;
//! let to = ChannelAddress::Multicast(SocketAddr::from((group, 7701)));
//! let mut sender = SendSocket::new(&SendConfig::new(interface, vec![to]))?;
//!
//! sender.send_batch(0, b"onetwothree", 3)?; // "one", "two", "thr", "ee": four datagrams
//! let mut batch = Batch::default();
//! receiver.recv_batch(Duration::from_secs(1), &mut batch)?;
//! for (datagram, payload) in batch.iter() {
//!     println!("{} sent {} bytes", datagram.from, payload.len());
//! }
//! # Ok(())
//! # }
//! ```

pub mod channels;
pub mod clock;
pub mod doctor;
pub mod frames;
pub mod group;
pub mod interface;
pub mod membership;
pub mod mtu;
pub mod namespace;
mod readiness;
pub mod receiver;
pub mod rx_thread;
pub mod sender;
mod sys;
pub mod thread;

pub use channels::Channels;
pub use clock::{Alarm, Clock, Wake};
pub use frames::{Frame, FrameError, FrameSocket};
pub use group::{GroupError, check_group, is_source_specific};
pub use interface::{Interface, InterfaceError, InterfaceSelector, Interfaces};
pub use membership::{Membership, MembershipError};
pub use mtu::{IpVersion, MtuError, symbol_size_for};
pub use namespace::{Namespace, NamespaceError};
pub use receiver::{Batch, BufferShortfall, ReceiveConfig, ReceiveError, ReceiveSocket, Reception};
pub use rx_thread::{ReceiveThread, ReceiveThreadConfig, ReceivedBatch};
pub use sender::{ChannelAddress, MtuDrop, SendConfig, SendError, SendSocket, Sent};
pub use thread::ThreadError;
