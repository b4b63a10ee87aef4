//! The other implementation's side of a transfer: the crate makes packets, this file has sockets.

use super::fontana_side::{Files, Losing, RATE_BYTES_PER_SECOND};
use flute::core::{Oti, UDPEndpoint, lct::Cenc};
use flute::receiver::{self, Receiver, writer::ObjectWriterBufferBuilder};
use flute::sender::{CarouselRepeatMode, ObjectDesc, Sender, TransferConfig};
use fontana::{Addressing, CancellationToken, wire};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// The session of every test.
pub(crate) const TSI: u64 = 0x1234;
/// Time limit of the peer for one session.
const PATIENCE: Duration = Duration::from_secs(60);

fn group(addressing: &Addressing) -> SocketAddrV4 {
    match addressing.address() {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => unreachable!("the tests use IPv4"),
    }
}

fn endpoint(addressing: &Addressing) -> UDPEndpoint {
    let group = group(addressing);
    UDPEndpoint::new(None, group.ip().to_string(), group.port())
}

/// A socket on loopback that sends to a group.
pub(crate) struct Sending {
    socket: Socket,
    to: SockAddr,
    started: Instant,
    bytes: u64,
}

impl Sending {
    pub(crate) fn to(addressing: &Addressing) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        socket.set_multicast_loop_v4(true).unwrap();
        Self { socket, to: group(addressing).into(), started: Instant::now(), bytes: 0 }
    }

    /// Sends a packet when the rate allows it.
    pub(crate) fn send(&mut self, packet: &[u8]) {
        let due = Duration::from_secs_f64(self.bytes as f64 / RATE_BYTES_PER_SECOND as f64);
        let early = due.saturating_sub(self.started.elapsed());
        // Sleeping takes longer than requested: wait until a few packets are due.
        if early > Duration::from_millis(2) {
            std::thread::sleep(early);
        }
        self.socket.send_to(packet, &self.to).unwrap();
        self.bytes += packet.len() as u64;
    }
}

/// A thread that sends until it is stopped.
pub(crate) struct Background {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn run(work: impl FnOnce(&CancellationToken) + Send + 'static) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        Self { stop, thread: Some(std::thread::spawn(move || work(&stopped))) }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.cancel();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The peer's default, `Oti::default()`, with another size of symbols.
pub(crate) fn no_code() -> Oti {
    Oti::new_no_code(1424, 64)
}

/// RFC 5510: blocks of 60 symbols with 12 repair symbols.
pub(crate) fn reed_solomon() -> Oti {
    Oti::new_reed_solomon_rs28(1400, 60, 12).unwrap()
}

/// The same under FEC Encoding ID 129.
pub(crate) fn small_block() -> Oti {
    Oti::new_reed_solomon_rs28_under_specified(1400, 60, 12).unwrap()
}

/// Blocks of 100 symbols with 20 % repair symbols.
pub(crate) fn raptor() -> Oti {
    Oti::new_raptor(1400, 100, 20, 1, 4).unwrap()
}

/// Blocks of 1 000 symbols with 20 % repair symbols.
pub(crate) fn raptorq(sub_blocks: u16) -> Oti {
    Oti::new_raptorq(1400, 1000, 200, sub_blocks, 4).unwrap()
}

/// The peer's configuration: its defaults, but for a table that comes more often than once a
/// second.
pub(crate) fn config() -> flute::sender::Config {
    flute::sender::Config {
        fdt_carousel_mode: CarouselRepeatMode::DelayBetweenTransfers(Duration::from_millis(100)),
        ..Default::default()
    }
}

/// A sender with nothing to send.
pub(crate) fn sender(addressing: &Addressing, oti: &Oti, config: &flute::sender::Config) -> Sender {
    Sender::new(endpoint(addressing), TSI, oti, config)
}

/// Repeats a file without end.
pub(crate) fn carousel(cenc: Cenc) -> TransferConfig {
    TransferConfig {
        carousel_mode: Some(CarouselRepeatMode::DelayBetweenTransfers(Duration::ZERO)),
        cenc,
        ..Default::default()
    }
}

/// A file as the peer describes it, with its MD5.
pub(crate) fn object(name: &str, bytes: &[u8], transfer: TransferConfig) -> Box<ObjectDesc> {
    let location = url::Url::parse(&format!("file:///{name}")).unwrap();
    let media_type = "application/octet-stream";
    ObjectDesc::create_from_buffer(bytes.to_vec(), media_type, &location, true, transfer).unwrap()
}

/// A sender that repeats files without end. Its table is complete.
pub(crate) fn sender_of(
    addressing: &Addressing,
    files: &Files,
    oti: &Oti,
    config: &flute::sender::Config,
    cenc: Cenc,
) -> Sender {
    let mut sender = sender(addressing, oti, config);
    for (name, bytes) in files {
        sender.add_object(0, object(name, bytes, carousel(cenc))).unwrap();
    }
    publish_all(&mut sender);
    sender
}

/// Publishes a table of all files, to which none is added.
pub(crate) fn publish_all(sender: &mut Sender) {
    sender.set_complete();
    sender.publish(SystemTime::now()).unwrap();
}

/// Sends the peer's packets, except those that are lost.
pub(crate) fn send(addressing: &Addressing, mut sender: Sender, mut losing: Losing) -> Background {
    let mut sending = Sending::to(addressing);
    Background::run(move |stop| {
        while !stop.is_cancelled() {
            match sender.read(SystemTime::now()) {
                Some(_) if losing.loses_one() => {}
                Some(packet) => sending.send(&packet),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    })
}

/// Every packet of one pass over the files.
pub(crate) fn packets(mut sender: Sender) -> Vec<Vec<u8>> {
    let now = SystemTime::now();
    std::iter::from_fn(|| sender.read(now)).collect()
}

/// A file as the peer's receiver left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Complete(Vec<u8>),
    Failed,
}

/// A socket that has joined, for the peer's receiver.
pub(crate) struct Listening {
    socket: Socket,
    addressing: Addressing,
}

impl Listening {
    pub(crate) fn join(addressing: &Addressing) -> Self {
        let group = group(addressing);
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        socket.set_recv_buffer_size(8 << 20).unwrap();
        socket.bind(&group.into()).unwrap();
        socket.join_multicast_v4(group.ip(), &Ipv4Addr::LOCALHOST).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        Self { socket, addressing: addressing.clone() }
    }

    /// Passes datagrams to `take` until it returns false.
    pub(crate) fn read(self, mut take: impl FnMut(&[u8]) -> bool) {
        let socket = std::net::UdpSocket::from(self.socket);
        let (started, mut datagram) = (Instant::now(), [0; 2048]);
        while started.elapsed() < PATIENCE {
            let Ok(length) = socket.recv(&mut datagram) else { continue };
            if !take(&datagram[..length]) {
                return;
            }
        }
    }

    /// Receives until this many files are complete, or one has failed. The peer checks MD5.
    pub(crate) fn receive(
        self,
        count: usize,
        config: receiver::Config,
        mut losing: Losing,
    ) -> Vec<(String, Outcome)> {
        let writer = Rc::new(ObjectWriterBufferBuilder::new(true));
        let mut peer =
            Receiver::new(&endpoint(&self.addressing), TSI, writer.clone(), Some(config));
        let started = Instant::now();
        let mut datagram = [0; 2048];
        let socket = std::net::UdpSocket::from(self.socket);
        while started.elapsed() < PATIENCE {
            let Ok(length) = socket.recv(&mut datagram) else { continue };
            if losing.loses_one() {
                continue;
            }
            // The peer returns an error for packets that it ignores.
            let _ = peer.push_data(&datagram[..length], SystemTime::now());
            let objects = writer.objects.borrow();
            let complete = objects.iter().filter(|object| object.borrow().complete).count();
            if complete >= count || objects.iter().any(|object| object.borrow().error) {
                break;
            }
        }
        let objects = writer.objects.borrow();
        let outcome = |object: &flute::receiver::writer::ObjectWriterBuffer| {
            let path = wire::parse_content_location(&object.meta.content_location).unwrap();
            let name = path.to_string();
            match object.complete {
                true => (name, Outcome::Complete(object.data.clone())),
                false => (name, Outcome::Failed),
            }
        };
        objects.iter().map(|object| outcome(&object.borrow())).collect()
    }
}

/// A receiver whose cache holds every block of the tests.
pub(crate) fn with_a_large_cache() -> receiver::Config {
    receiver::Config { object_max_cache_size: Some(256 << 20), ..receiver::Config::default() }
}

/// The files of a reception in which nothing failed.
#[track_caller]
pub(crate) fn complete(outcomes: Vec<(String, Outcome)>) -> Files {
    let bytes = |(name, outcome)| match outcome {
        Outcome::Complete(bytes) => Some((name, bytes)),
        Outcome::Failed => None,
    };
    let files: Option<_> = outcomes.into_iter().map(bytes).collect();
    files.expect("the peer gave up a file")
}
