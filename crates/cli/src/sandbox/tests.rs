//! Threads that are confined, and what they can and cannot do then. A thread stays confined until
//! its end, and other threads of the test are not.

use super::capabilities::{ALL_FILES, give_up_others};
use super::files::{Enforcement, Right, Rule, Tcp, confine};
use super::network::{self, Sending, Sockets};
use fontana::net::Interfaces;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::thread;

/// Runs `probe` on a thread that is confined to `rules`. `false`, loudly, if the kernel cannot.
fn confined(rules: &[Rule], probe: impl FnOnce() + Send) -> bool {
    let run = || match confine(rules, Tcp::Refused).unwrap() {
        Enforcement::Full => {
            probe();
            true
        }
        less => {
            fontana_testing::skip(&format!("Landlock of Linux 6.12 is needed: {less:?}"));
            false
        }
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

fn refused<T>(result: io::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

#[test]
fn a_confined_thread_changes_its_directory_and_nothing_else() {
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (inside, outside) = (inside.path(), outside.path());
    for directory in [inside, outside] {
        fs::create_dir(directory.join("directory")).unwrap();
        fs::write(directory.join("there"), "before").unwrap();
    }
    let mut opened = OpenOptions::new().append(true).open(outside.join("there")).unwrap();
    let is_confined = confined(&[Rule::new(inside, Right::Change)], || {
        // Everything that a reception does.
        fs::write(inside.join("new"), "x").unwrap();
        fs::write(inside.join("there"), "truncated").unwrap();
        fs::create_dir(inside.join("directory/below")).unwrap();
        fs::rename(inside.join("new"), inside.join("directory/below/moved")).unwrap();
        fs::hard_link(inside.join("there"), inside.join("directory/linked")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", inside.join("link")).unwrap();
        fs::remove_file(inside.join("directory/below/moved")).unwrap();
        fs::remove_dir(inside.join("directory/below")).unwrap();
        assert_eq!(fs::read_dir(inside).unwrap().count(), 3);

        assert!(refused(fs::write(outside.join("new"), "x")));
        assert!(refused(OpenOptions::new().write(true).open(outside.join("there"))));
        assert!(refused(OpenOptions::new().write(true).truncate(true).open("/dev/null")));
        assert!(refused(fs::read(outside.join("there"))));
        assert!(refused(fs::read(inside.join("link"))));
        assert!(refused(fs::read_dir("/")));
        assert!(refused(fs::create_dir(outside.join("below"))));
        assert!(refused(fs::remove_file(outside.join("there"))));
        assert!(refused(fs::remove_dir(outside.join("directory"))));
        assert!(fs::rename(inside.join("there"), outside.join("moved")).is_err());
        assert!(fs::hard_link(outside.join("there"), inside.join("taken")).is_err());
        assert!(refused(Command::new("/bin/true").status()));
        // What was opened before stays open.
        opened.write_all(b" and after").unwrap();
        // Threads inherit it.
        let inherited = thread::spawn({
            let outside = outside.to_owned();
            move || refused(fs::write(outside.join("new"), "x"))
        });
        assert!(inherited.join().unwrap());
    });
    if is_confined {
        assert_eq!(fs::read(outside.join("there")).unwrap(), b"before and after");
        assert_eq!(fs::read_dir(outside).unwrap().count(), 2);
    }
    // This thread is not confined.
    fs::write(outside.join("new"), "x").unwrap();
}

#[test]
fn a_right_to_log_or_to_delete_reads_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (logs, others) = (directory.path().join("logs"), directory.path().join("others"));
    for directory in [&logs, &others] {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("log"), "secret").unwrap();
    }
    let rules = [
        Rule::new(&logs, Right::Log),
        Rule::new(&others, Right::Delete),
        // Left out: it does not exist.
        Rule::new(directory.path().join("missing"), Right::Change),
    ];
    let append = |path: &Path| OpenOptions::new().create(true).append(true).open(path);
    confined(&rules, || {
        fs::rename(logs.join("log"), logs.join("log.1")).unwrap();
        append(&logs.join("log")).unwrap().write_all(b"line\n").unwrap();
        assert!(refused(fs::read(logs.join("log.1"))));
        assert!(refused(fs::read_dir(&logs)));
        assert!(refused(fs::create_dir(logs.join("below"))));
        assert!(refused(append(&others.join("log"))));
        assert!(refused(fs::read(others.join("log"))));
        fs::remove_file(others.join("log")).unwrap();
        assert!(refused(append(&others.join("log"))));
    });
}

#[test]
fn a_confined_thread_opens_no_tcp_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    confined(&[], || {
        assert!(refused(TcpStream::connect(address)));
        assert!(refused(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))));
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    });
    TcpStream::connect(address).unwrap();
}

/// Runs `probe` on a thread of its own.
fn on_a_thread<T: Send>(probe: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(probe).join().unwrap())
}

/// Sockets for UDP alone.
fn only(sending: Sending<'_>) -> Sockets<'_> {
    Sockets { sending, tcp: false, routes: false }
}

fn socket(family: rustix::net::AddressFamily, kind: rustix::net::SocketType) -> bool {
    rustix::net::socket(family, kind, None).is_ok()
}

#[test]
fn a_thread_that_may_not_send_receives() {
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let elsewhere = sender.local_addr().unwrap();
    sender.set_nonblocking(true).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let before = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    sender.send_to(b"a packet", before.local_addr().unwrap()).unwrap();
    let interfaces = Interfaces::list().unwrap();
    on_a_thread(|| {
        network::confine(&only(Sending::Nowhere)).unwrap();
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for socket in [&receiver, &before] {
            assert!(refused(socket.send_to(b"x", elsewhere)));
            assert!(refused(socket.connect(elsewhere)));
            assert!(socket.send(b"x").is_err());
            let names = rustix::net::SocketAddrAny::from(elsewhere);
            let message = [io::IoSlice::new(b"x")];
            let mut ancillary = rustix::net::SendAncillaryBuffer::default();
            let flags = rustix::net::SendFlags::empty();
            let sent = rustix::net::sendmsg_addr(socket, &names, &message, &mut ancillary, flags);
            assert_eq!(sent.unwrap_err(), rustix::io::Errno::PERM);
            // Without a destination there is nothing to refuse, and no address to send to.
            let written = rustix::io::write(socket, b"x").unwrap_err();
            assert_eq!(written, rustix::io::Errno::DESTADDRREQ);
        }
        assert!(refused(TcpStream::connect(listener.local_addr().unwrap())));
        assert!(refused(UnixDatagram::unbound()));
        use rustix::net::{AddressFamily as Family, SocketType as Kind};
        for (family, kind) in [
            (Family::NETLINK, Kind::RAW),
            (Family::NETLINK, Kind::DGRAM),
            (Family::PACKET, Kind::RAW),
            (Family::PACKET, Kind::DGRAM),
            (Family::INET, Kind::RAW),
            (Family::INET, Kind::STREAM),
            (Family::INET6, Kind::STREAM),
            (Family::UNIX, Kind::STREAM),
        ] {
            assert!(!socket(family, kind), "{family:?} {kind:?}");
        }
        assert!(socket(Family::INET, Kind::DGRAM) && socket(Family::INET6, Kind::DGRAM));

        // The pairs with which threads wake each other.
        let (mut here, mut there) = UnixStream::pair().unwrap();
        here.write_all(b"wake").unwrap();
        let mut woken = [0; 4];
        there.read_exact(&mut woken).unwrap();

        let mut packet = [0; 16];
        assert_eq!(before.recv(&mut packet).unwrap(), 8);
        receiver.join_multicast_v4(&[239, 255, 77, 200].into(), &Ipv4Addr::LOCALHOST).unwrap();

        // Also without netlink.
        let found = Interfaces::list().unwrap();
        let named = |list: &Interfaces| {
            list.iter().map(|i| (i.index, i.name.clone(), i.is_up, i.mtu)).collect::<Vec<_>>()
        };
        assert_eq!(named(&found), named(&interfaces));
    });
    assert!(sender.recv(&mut [0; 16]).is_err(), "something was sent");
    sender.send_to(b"x", before.local_addr().unwrap()).unwrap();
}

#[test]
fn a_thread_that_may_report_sends_from_one_socket_only() {
    let collector = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let to = collector.local_addr().unwrap();
    let [feedback, other] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap());
    on_a_thread(|| {
        network::confine(&only(Sending::From(feedback.as_fd()))).unwrap();
        feedback.send_to(b"a report", to).unwrap();
        assert!(refused(feedback.connect(to)));
        let later = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for socket in [&other, &later] {
            assert!(refused(socket.send_to(b"x", to)));
            assert!(refused(socket.connect(to)));
        }
        assert!(refused(UnixDatagram::unbound()));
        let mut buffer = [0; 16];
        assert_eq!(collector.recv(&mut buffer).unwrap(), 8);
    });
}

#[test]
fn a_thread_asks_no_other_program_of_its_host() {
    use rustix::net::{AddressFamily as Family, SocketFlags, SocketType as Kind, socketpair};
    let directory = tempfile::tempdir().unwrap();
    let (stream, datagrams) = (directory.path().join("stream"), directory.path().join("datagrams"));
    let _listener = UnixListener::bind(&stream).unwrap();
    let inside = UnixDatagram::bind(&datagrams).unwrap();
    inside.set_nonblocking(true).unwrap();
    let mirror = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = mirror.local_addr().unwrap();
    for (tcp, routes) in [(false, false), (true, false), (false, true)] {
        on_a_thread(|| {
            let sockets = Sockets { sending: Sending::Anywhere, tcp, routes };
            network::confine(&sockets).unwrap();
            assert!(refused(UnixStream::connect(&stream)));
            assert!(refused(UnixDatagram::unbound()));
            // A pair of datagram sockets sends to any other one, with a name of its own or without.
            for kind in [Kind::DGRAM, Kind::SEQPACKET, Kind::RAW] {
                let pair = socketpair(Family::UNIX, kind, SocketFlags::empty(), None);
                assert_eq!(pair.unwrap_err(), rustix::io::Errno::PERM, "{kind:?}");
            }
            let (mut here, mut there) = UnixStream::pair().unwrap();
            here.write_all(b"wake").unwrap();
            there.read_exact(&mut [0; 4]).unwrap();
            for (family, kind, is_allowed) in [
                (Family::INET, Kind::DGRAM, true),
                (Family::INET6, Kind::DGRAM, true),
                (Family::INET, Kind::STREAM, tcp),
                (Family::INET6, Kind::STREAM, tcp),
                (Family::NETLINK, Kind::RAW, routes),
                (Family::INET, Kind::RAW, false),
                (Family::PACKET, Kind::RAW, false),
                (Family::PACKET, Kind::DGRAM, false),
                (Family::UNIX, Kind::SEQPACKET, false),
                (Family::VSOCK, Kind::STREAM, false),
            ] {
                assert_eq!(socket(family, kind), is_allowed, "{family:?} {kind:?} {sockets:?}");
            }
            // Netlink for anything but routes, and pings.
            for (family, kind, protocol) in
                [(Family::NETLINK, Kind::RAW, 12), (Family::INET, Kind::DGRAM, 1)]
            {
                let protocol = std::num::NonZeroU32::new(protocol);
                let protocol = protocol.map(rustix::net::Protocol::from_raw);
                let opened = rustix::net::socket(family, kind, protocol);
                assert_eq!(opened.unwrap_err(), rustix::io::Errno::PERM, "{family:?}");
            }
            assert_eq!(TcpStream::connect(address).is_ok(), tcp);
            assert!(refused(Command::new("/bin/true").status()));
            // Threads can still be made, and names be resolved.
            thread::spawn(|| {}).join().unwrap();
            assert!(("localhost", 80).to_socket_addrs().unwrap().next().is_some());
        });
    }
    assert!(inside.recv(&mut [0; 8]).is_err(), "something was sent");
}

#[test]
fn a_thread_gives_up_the_rights_of_root_for_good() {
    use rustix::thread::{CapabilitySet, capabilities, capability_is_in_bounding_set};
    let before = capabilities(None).unwrap();
    if !before.effective.contains(CapabilitySet::SETPCAP) {
        return fontana_testing::skip("root is needed to have something to give up");
    }
    on_a_thread(|| {
        give_up_others(ALL_FILES).unwrap();
        let now = capabilities(None).unwrap();
        assert_eq!((now.effective, now.permitted), (ALL_FILES, ALL_FILES));
        assert!(now.inheritable.is_empty());
        let left = CapabilitySet::all()
            .iter()
            .filter(|&capability| capability_is_in_bounding_set(capability).unwrap_or(false));
        assert_eq!(left.count(), 0);
    });
    assert_eq!(capabilities(None).unwrap(), before, "those of another thread");
}

#[test]
fn a_program_without_networks_talks_to_this_host_only() {
    on_a_thread(|| {
        network::refuse_networks().unwrap();
        assert!(refused(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))));
        assert!(refused(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))));
        UnixDatagram::unbound().unwrap();
        assert!(Command::new("/bin/true").status().unwrap().success());
        // What it starts inherits the filter.
        let script = "grep -q '^Seccomp:.2' /proc/self/status";
        assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
    });
}
