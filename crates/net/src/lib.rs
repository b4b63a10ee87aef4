//! UDP sockets of Fontana: one-way multicast, broadcast, and unicast fan-out.
//!
//! The endpoints of `fontana-proto` decide *what* is sent and *when*. This crate has the sockets,
//! the receive thread and the real clock. It moves datagrams, and does not interpret them.
//!
//! | module | contents |
//! |---|---|
//! | [`clock`] | nanoseconds since the run began; sleeps until a time; waits that another thread can end |
//! | [`interface`] | lists network interfaces, and selects one by name, address or network |
//! | [`group`] | multicast groups that may carry a session |
//! | [`mtu`] | the symbol size for an interface's MTU |
//! | [`sender`] | sends equal datagrams in GSO batches |
//! | [`receiver`] | joins groups, receives in batches, and counts datagrams that the kernel dropped |
//! | [`membership`] | joins and leaves while another thread receives |
//! | [`channels`] | the sockets of a session's channels |
//! | [`rx_thread`] | a thread that drains the sockets and does not wait for its consumer |
//! | [`feedback`] | the return path: sockets that are opened only where reports are allowed |
//! | [`presence`] | interfaces that are gone, and back with another index |
//! | [`optional`] | calls that the content does not need |
//! | [`scoped`] | a socket with a TTL for each datagram, for protocols that repair losses nearby |
//! | [`frames`] | raw Ethernet frames, for emulators |
//! | [`thread`] | named threads, whose start may fail, and their panics as errors |
//! | [`namespace`] | network namespaces of this process, for hosts that are threads, and a switch between them |
//! | [`neighbor`] | whether the kernel knows where on a link a host is |
//! | [`doctor`] | checks whether multicast works on this host, and suggests remedies |
//!
//! Linux is the main platform. On other Unix systems the crate is designed to compile and to work
//! with less: no segmentation offload, no drop counter ([`ReceiveSocket::drops`] stays 0), an
//! assumed interface MTU. The documentation of each item mentions its limits.
//!
//! ```no_run
//! use std::net::{Ipv4Addr, SocketAddr};
//! use std::time::Duration;
//! use fontana_net::{Batch, ChannelAddress, Interfaces};
//! use fontana_net::{ReceiveConfig, ReceiveSocket, SendConfig, SendSocket};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let group = Ipv4Addr::new(239, 255, 77, 1);
//! let interfaces = Interfaces::list()?;
//! let interface = interfaces.select(&"lo".parse()?)?;
//!
//! let config = ReceiveConfig::multicast(group.into(), 7701, interface);
//! let mut receiver = ReceiveSocket::open(&config)?;
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
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod channels;
pub mod clock;
pub mod doctor;
pub mod feedback;
pub mod frames;
pub mod group;
pub mod interface;
pub mod membership;
pub mod mtu;
pub mod namespace;
pub mod neighbor;
pub mod optional;
pub mod presence;
mod readiness;
pub mod receiver;
pub mod rx_thread;
pub mod scoped;
pub mod sender;
mod sys;
pub mod thread;

pub use channels::Channels;
pub use clock::{Alarm, Bell, Clock, Wake};
pub use feedback::{CollectorSocket, FeedbackSocket};
pub use frames::{Frame, FrameError, FrameSocket};
pub use group::{GroupError, check_group, is_source_specific};
pub use interface::{Interface, InterfaceError, InterfaceSelector, Interfaces, routed_source};
pub use membership::{Membership, MembershipError};
pub use mtu::{IpVersion, MtuError, symbol_size_for};
pub use namespace::{Namespace, NamespaceError, Switch};
pub use neighbor::MissingNeighbor;
pub use optional::{OptionalSetting, Ungranted};
pub use presence::{InterfaceChange, Presence};
pub use receiver::{Batch, BufferShortfall, ReceiveConfig, ReceiveError, ReceiveSocket, Reception};
pub use rx_thread::{ReceiveThread, ReceiveThreadConfig, ReceivedBatch};
pub use scoped::{ScopedDatagram, ScopedSocket};
pub use sender::{
    ChannelAddress, LossCause, MtuDrop, SendConfig, SendError, SendLoss, SendSocket, Sent,
};
pub use thread::{PanicError, ThreadError};
