//! A network of hosts on one machine: namespaces on a bridge with IGMP snooping and a querier.
//!
//! Needs root, `ip` and `bridge` (iproute2), `nft` and `ethtool`. Traffic stays in the namespaces.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use super::program::Program;
use fontana_testing::give;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::ffi::OsString;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Whether namespaces are available. A skipped test is reported; with `CI=true` it fails.
pub fn available() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n");
    let tools = ["ip", "bridge", "nft", "ethtool"];
    let missing: Vec<_> = tools
        .iter()
        .filter(|tool| {
            let which = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
            !which.is_ok_and(|o| o.status.success())
        })
        .collect();
    let reason = if !root {
        "namespaces need root".to_owned()
    } else if !missing.is_empty() {
        format!("namespaces need {missing:?}: apt-get install iproute2 nftables ethtool")
    } else {
        return true;
    };
    fontana_testing::skip(&reason);
    false
}

pub fn sh(command: &str) -> Output {
    let output = Command::new("sh").args(["-ec", command]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {error}");
    output
}

/// A bridge and its hosts; everything is removed when it is dropped.
pub struct Bench {
    name: String,
    hosts: usize,
}

impl Bench {
    /// `hosts` hosts, 10.77.0.1 upwards, on one bridge.
    pub fn new(hosts: usize) -> Self {
        static BENCHES: AtomicU32 = AtomicU32::new(0);
        let number = BENCHES.fetch_add(1, Ordering::Relaxed);
        let name = format!("fb{}n{number}", std::process::id());
        let bench = Self { name, hosts };
        let bridge = bench.switch();
        sh(&format!(
            "ip netns add {bridge}; ip -n {bridge} link set lo up;
             ip -n {bridge} link add br0 type bridge mcast_snooping 1 mcast_igmp_version 3 \
                mcast_mld_version 2 mcast_last_member_interval 10 mcast_query_response_interval 20;
             ip -n {bridge} link set br0 type bridge mcast_querier 1;
             ip -n {bridge} addr add 10.77.0.254/24 dev br0; ip -n {bridge} link set br0 up"
        ));
        for number in 0..hosts {
            let host = bench.host(number);
            sh(&format!(
                "ip netns add {host}; ip -n {host} link set lo up;
                 ip -n {bridge} link add p{number} type veth peer name eth0 netns {host};
                 ip -n {bridge} link set p{number} master br0 up;
                 ip -n {host} addr add {}/24 dev eth0; ip -n {host} link set eth0 up;
                 ip -n {host} addr add {}/64 dev eth0 nodad;
                 ip -n {host} route add default dev eth0;
                 ip netns exec {host} ethtool -K eth0 tx-udp-segmentation off gro off >/dev/null;
                 ip netns exec {bridge} ethtool -K p{number} tx-udp-segmentation off gro off >/dev/null",
                Self::address(number),
                Self::address6(number)
            ));
        }
        // The bridge floods until its querier has waited for one round of answers. It reads how
        // long that is when it is switched on, hence the order above.
        std::thread::sleep(Duration::from_millis(500));
        bench
    }

    /// Removes a host's interface.
    pub fn unplug(&self, host: usize) {
        sh(&format!("ip -n {} link del eth0", self.host(host)));
    }

    /// Makes a host's interface again, with its name, this address, and another index.
    pub fn plug(&self, host: usize, address: &str) {
        let (bridge, name) = (self.switch(), self.host(host));
        sh(&format!(
            "ip -n {bridge} link add p{host} type veth peer name eth0 netns {name};
             ip -n {bridge} link set p{host} master br0 up;
             ip -n {name} addr add {address}/24 dev eth0; ip -n {name} link set eth0 up;
             ip -n {name} route add default dev eth0"
        ));
    }

    /// Gives a host an address of another network, as if it were beyond a router.
    pub fn move_away(&self, host: usize, address: &str) {
        let (name, own) = (self.host(host), Self::address(host));
        sh(&format!(
            "ip -n {name} addr add {address}/24 dev eth0; ip -n {name} addr del {own}/24 dev eth0;
             ip -n {name} route replace default dev eth0"
        ));
    }

    /// The switch asks for members so often.
    pub fn query_every(&self, interval: Duration) {
        let hundredths = interval.as_millis() / 10;
        let switch = self.switch();
        sh(&format!(
            "ip -n {switch} link set br0 type bridge mcast_querier 0;
             ip -n {switch} link set br0 type bridge mcast_query_interval {hundredths} \
                mcast_startup_query_interval {hundredths};
             ip -n {switch} link set br0 type bridge mcast_querier 1"
        ));
        // As above.
        std::thread::sleep(Duration::from_millis(500));
    }

    /// Runs commands of a shell on a host.
    pub fn run(&self, host: usize, commands: &str) {
        let status = self.command(host, "sh").args(["-ec", commands]).status().unwrap();
        assert!(status.success(), "{commands}");
    }

    /// The switch passes no multicast on from now on.
    pub fn pass_no_multicast(&self) {
        sh(&format!(
            "ip netns exec {} nft -f - <<END
table bridge filter {{
  chain forward {{
    type filter hook forward priority 0;
    ip daddr 239.255.0.0/16 drop
  }}
}}
END",
            self.switch()
        ));
    }

    fn switch(&self) -> String {
        format!("{}s", self.name)
    }

    fn host(&self, number: usize) -> String {
        format!("{}h{number}", self.name)
    }

    /// Name of the namespace of a host's emulator.
    fn between(&self, number: usize) -> String {
        format!("{}r{number}", self.name)
    }

    pub fn address(number: usize) -> String {
        format!("10.77.0.{}", number + 1)
    }

    pub fn address6(number: usize) -> String {
        format!("fd77::{}", number + 1)
    }

    /// Sets the MTU of a host's interface, not of the switch's.
    pub fn set_mtu(&self, host: usize, mtu: u32) {
        sh(&format!("ip -n {} link set eth0 mtu {mtu}", self.host(host)));
    }

    /// Loses UDP datagrams at the host's input, at random: `permille` of them.
    pub fn lose(&self, host: usize, permille: u32) {
        let host = self.host(host);
        sh(&format!(
            "ip netns exec {host} nft -f - <<END
table inet loss {{
  chain input {{
    type filter hook input priority 0;
    meta l4proto udp counter
    meta l4proto udp numgen random mod 1000 < {permille} counter drop
  }}
}}
END"
        ));
    }

    /// Marks what comes to a host for IPv4 groups as having met congestion (RFC 3168), as a router
    /// does.
    pub fn mark(&self, host: usize) {
        let host = self.host(host);
        sh(&format!(
            "ip netns exec {host} nft -f - <<END
table inet marks {{
  chain came {{
    type filter hook prerouting priority -300;
    ip daddr 224.0.0.0/4 meta l4proto udp ip ecn set ce
  }}
}}
END"
        ));
    }

    /// Datagrams that came to a lossy host, and those of them that the rule dropped.
    pub fn losses(&self, host: usize) -> (u64, u64) {
        self.counters(host, "loss input")
    }

    /// Counts what comes to a host for each of these IPv4 groups, joined or not: all that its port
    /// of the switch has sent.
    pub fn count_groups(&self, host: usize, groups: &[String]) {
        let host = self.host(host);
        let rules: String = groups
            .iter()
            .map(|group| format!("    ip daddr {group} udp dport > 0 counter\n"))
            .collect();
        sh(&format!(
            "ip netns exec {host} nft -f - <<END
table inet groups {{
  chain came {{
    type filter hook prerouting priority -300;
{rules}  }}
}}
END"
        ));
    }

    /// Counts the packets of an IPv4 group that come to a host: those that no router passes on, and
    /// all others.
    pub fn count_hops(&self, host: usize, group: &str) {
        let host = self.host(host);
        sh(&format!(
            "ip netns exec {host} nft -f - <<END
table inet hops {{
  chain came {{
    type filter hook prerouting priority -300;
    ip daddr {group} ip ttl 1 counter
    ip daddr {group} ip ttl > 1 counter
  }}
}}
END"
        ));
    }

    /// What was counted since.
    pub fn hops(&self, host: usize) -> (u64, u64) {
        self.counters(host, "hops came")
    }

    /// What was counted since, in packets for each group.
    pub fn groups(&self, host: usize) -> Vec<u64> {
        self.all_counters(host, "groups came")
    }

    /// Waits until no more packets of the counted groups arrive at a host.
    pub fn wait_until_quiet(&self, host: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut before = self.groups(host);
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let now = self.groups(host);
            if now == before {
                return;
            }
            assert!(Instant::now() < deadline, "host {host}: {before:?}, then {now:?}");
            before = now;
        }
    }

    /// What the two counters of a chain have counted, in packets.
    fn counters(&self, host: usize, chain: &str) -> (u64, u64) {
        let counters = self.all_counters(host, chain);
        (counters[0], counters[1])
    }

    fn all_counters(&self, host: usize, chain: &str) -> Vec<u64> {
        let host = self.host(host);
        let output = sh(&format!("ip netns exec {host} nft -j list chain inet {chain}"));
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        list["nftables"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| item["rule"]["expr"].as_array())
            .flatten()
            .filter_map(|expression| expression["counter"]["packets"].as_u64())
            .collect()
    }

    /// Counts what a host sends from now on. Neighbour discovery belongs to the system and is left
    /// out, as is address resolution, which is not IP.
    pub fn count_sent(&self, host: usize) {
        let host = self.host(host);
        sh(&format!(
            "ip netns exec {host} nft -f - <<END
table inet sent {{
  chain output {{
    type filter hook output priority 0;
    oifname \"eth0\" ip protocol igmp counter
    oifname \"eth0\" meta l4proto != {{ igmp, ipv6-icmp }} counter
  }}
}}
END"
        ));
    }

    /// What was counted since: membership reports, and everything else.
    pub fn sent(&self, host: usize) -> (u64, u64) {
        self.counters(host, "sent output")
    }

    /// Gives a host of another bench a second interface, eth1, at this bench's switch, with the
    /// address 10.78.0.100 and its number.
    pub fn attach(&self, other: &Self, host: usize) {
        let (switch, guest, port) = (self.switch(), other.host(host), format!("guest{host}"));
        let address = 100 + host;
        // Groups come by both interfaces, also from addresses that are routed by the first one.
        sh(&format!(
            "ip -n {switch} link add {port} type veth peer name eth1 netns {guest};
             ip -n {switch} link set {port} master br0 up;
             ip -n {guest} addr add 10.78.0.{address}/24 dev eth1; ip -n {guest} link set eth1 up;
             ip netns exec {guest} sysctl -qw net.ipv4.conf.all.rp_filter=0 \
                net.ipv4.conf.eth1.rp_filter=0;
             ip netns exec {guest} ethtool -K eth1 tx-udp-segmentation off gro off >/dev/null;
             ip netns exec {switch} ethtool -K {port} tx-udp-segmentation off gro off >/dev/null"
        ));
    }

    /// A second network of two hosts: the first host of this one is on it, too, and the other one
    /// knows nothing of this one.
    pub fn second_network(&self) -> Self {
        let other = Self::new(2);
        other.attach(self, 0);
        let script = "ip addr flush dev eth0; ip addr add 10.78.0.2/24 dev eth0; \
                      ip route replace default dev eth0";
        assert!(other.command(1, "sh").args(["-ec", script]).status().unwrap().success());
        other
    }

    /// Bytes that the switch has sent to a host that was [attached](Self::attach).
    pub fn forwarded_to_guest(&self, host: usize) -> u64 {
        self.forwarded_by(&format!("guest{host}"))
    }

    /// Bytes that the switch has sent to a host.
    pub fn forwarded(&self, host: usize) -> u64 {
        self.forwarded_by(&format!("p{host}"))
    }

    fn forwarded_by(&self, port: &str) -> u64 {
        let output = sh(&format!("ip -n {} -j -s link show {port}", self.switch()));
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        list[0]["stats64"]["tx"]["bytes"].as_u64().unwrap()
    }

    /// Gives a host's link a rate, as a token bucket with a queue of 100 ms. What the bucket holds
    /// is queue, too: two packets, or the 4 ms of a timer's tick.
    pub fn shape(&self, host: usize, megabits: f64) {
        let burst = (megabits * 1e6 / 8.0 * 0.004).max(3_100.0);
        sh(&format!(
            "tc -n {} qdisc add dev p{host} root tbf rate {megabits}mbit burst {burst:.0} latency 100ms",
            self.switch()
        ));
    }

    /// Gives a host's link a rate, as a token bucket of two packets with a queue of so many.
    pub fn shape_with_queue(&self, host: usize, megabits: u32, packets: u32) {
        let (burst, packet) = (3_100, 1_514);
        sh(&format!(
            "tc -n {} qdisc add dev p{host} root tbf rate {megabits}mbit burst {burst} limit {}",
            self.switch(),
            burst + packets * packet
        ));
    }

    /// Gives what a host sends a rate, as a token bucket with a queue of 100 ms.
    pub fn shape_sending(&self, host: usize, megabits: u32) {
        let host = self.host(host);
        // A bucket passes whole batches of segments, or none.
        sh(&format!(
            "ip netns exec {host} ethtool -K eth0 tso off gso off >/dev/null;
             tc -n {host} qdisc add dev eth0 root tbf rate {megabits}mbit burst 15kb latency 100ms"
        ));
    }

    /// Takes down the port of a host: nothing that it sends arrives anywhere.
    pub fn cut(&self, host: usize) {
        sh(&format!("ip -n {} link set p{host} down", self.switch()));
    }

    /// Puts `fontana-lab emulate` with these options between the switch and a host: direction 0 is
    /// to the host. It runs once this returns, until it is interrupted; later ones take its place.
    pub fn emulator(&self, host: usize, options: &str) -> Program {
        let (switch, between) = (self.switch(), self.between(host));
        // The emulator takes the port of the switch, and the switch gets a new one. Without IPv6
        // the namespace in the middle sends nothing itself.
        sh(&format!(
            "ip netns pids {between} >/dev/null 2>&1 && exit 0;
             ip netns add {between};
             ip netns exec {between} sysctl -qw net.ipv6.conf.default.disable_ipv6=1;
             ip -n {switch} link set p{host} down netns {between} name far;
             ip -n {switch} link add p{host} type veth peer name near netns {between};
             ip netns exec {switch} ethtool -K p{host} tx-udp-segmentation off gro off >/dev/null;
             ip -n {switch} link set p{host} master br0 up;
             ip -n {between} link set near up; ip -n {between} link set far up"
        ));
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &between])
            .arg(fontana_testing::program("fontana-lab"))
            .args("emulate --json --between near far".split(' '))
            .args(options.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut emulator = Program::start(command);
        emulator.wait_for("emulator", Duration::from_secs(10));
        emulator
    }

    /// A socket on a host for this process.
    pub fn udp_socket(&self, host: usize) -> UdpSocket {
        let namespace = std::fs::File::open(format!("/run/netns/{}", self.host(host))).unwrap();
        // A socket stays in its namespace, also when the thread that entered it has ended.
        let make = move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            UdpSocket::bind("0.0.0.0:0").unwrap()
        };
        std::thread::spawn(make).join().unwrap()
    }

    /// Starts the program on a host.
    pub fn start(&self, host: usize, arguments: &[OsString]) -> Program {
        let mut command = self.command(host, env!("CARGO_BIN_EXE_fontana"));
        give(&mut command, arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Program::start(command)
    }

    /// Runs any command on a host.
    pub fn command(&self, host: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.host(host), program]);
        // The key of the host is not that of who runs the tests.
        command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
        command
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for number in 0..self.hosts {
            let _ = Command::new("ip").args(["netns", "del", &self.host(number)]).status();
            let between = self.between(number);
            if Path::new("/run/netns").join(&between).exists() {
                let _ = Command::new("ip").args(["netns", "del", &between]).status();
            }
        }
        let _ = Command::new("ip").args(["netns", "del", &self.switch()]).status();
    }
}

/// A small file system in memory; unmounted when it is dropped.
pub struct Mounted(std::path::PathBuf);

impl Mounted {
    pub fn tmpfs(at: &Path, size: &str) -> Self {
        sh(&format!("mount -t tmpfs -o size={size} tmpfs '{}'", at.display()));
        Self(at.to_owned())
    }

    pub fn resize(&self, size: &str) {
        sh(&format!("mount -o remount,size={size} '{}'", self.0.display()));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
