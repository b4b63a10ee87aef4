//! The hosts of a setting: network namespaces on a switch.

use super::proc;
use super::setting::{Mode, Setting};
use fontana_net::{Namespace, Switch};
use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

/// The interface of every host.
pub(crate) const INTERFACE: &str = Switch::HOST_INTERFACE;

/// The sender's port of the switch.
const SENDER_PORT: &str = "sender";

/// The queue in front of a receiver's link: a token bucket, `tc-tbf(8)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    kilobytes: u32,
    /// Rate of the link.
    kilobits_per_second: u64,
}

impl Queue {
    /// The queue of links that exceed this rate by 6 %: headers take 3 %.
    pub(crate) fn at(megabits_per_second: u32, kilobytes: u32) -> Self {
        Self { kilobytes, kilobits_per_second: u64::from(megabits_per_second) * 1_060 }
    }

    /// The bucket is as large as the queue: the kernel's timer is late by some packets, and lets
    /// them pass afterwards.
    fn limit(self, switch: &Namespace, port: &str) -> Result<(), String> {
        let (rate, bytes) = (self.kilobits_per_second, self.kilobytes * 1_000);
        let line =
            format!("qdisc add dev {port} root tbf rate {rate}kbit burst {bytes} limit {bytes}");
        command(switch, "tc", &line.split(' ').collect::<Vec<_>>(), "").map(drop)
    }
}

/// A sender and receivers.
pub(crate) struct Hosts {
    switch: Switch,
    pub(crate) sender: Namespace,
    pub(crate) receivers: Vec<Namespace>,
}

impl Hosts {
    /// Creates the hosts. The sender is host 0, and receivers are numbered from 1.
    ///
    /// # Errors
    /// What is missing, or failed.
    pub(crate) fn new(setting: &Setting, queue: Option<Queue>) -> Result<Self, String> {
        let hosts = Self::connected(setting.receivers)?;
        hosts.switch.settle();
        for port in hosts.ports().skip(1) {
            queue.map_or(Ok(()), |queue| queue.limit(hosts.switch.namespace(), &port))?;
        }
        if setting.mode == Mode::Frames {
            segment_in_software(hosts.switch.namespace(), hosts.ports())?;
            for host in hosts.all() {
                segment_in_software(host, [INTERFACE.to_owned()])?;
            }
        }
        if setting.loss > 0 {
            hosts.receivers.iter().try_for_each(|host| lose(host, setting.loss))?;
        }
        Ok(hosts)
    }

    /// Hosts whose packets are neither divided nor lost.
    ///
    /// # Errors
    /// What is missing, or failed.
    pub(crate) fn connected(receivers: usize) -> Result<Self, String> {
        let text = |error: fontana_net::NamespaceError| error.to_string();
        let switch = Switch::new().map_err(text)?;
        let sender = Namespace::silent().map_err(text)?;
        let receivers = (0..receivers).map(|_| Namespace::silent()).collect::<Result<_, _>>();
        let hosts = Self { switch, sender, receivers: receivers.map_err(text)? };
        for (number, (host, port)) in hosts.all().zip(hosts.ports()).enumerate() {
            hosts.switch.connect(&port, host).map_err(text)?;
            let address = address(number);
            host.ip(&format!(
                "link set lo up\n\
                 addr add {address}/24 brd + dev {INTERFACE}\n\
                 link set {INTERFACE} up\n\
                 route add default dev {INTERFACE}\n"
            ))
            .map_err(text)?;
        }
        Ok(hosts)
    }

    fn all(&self) -> impl Iterator<Item = &Namespace> {
        std::iter::once(&self.sender).chain(&self.receivers)
    }

    fn ports(&self) -> impl Iterator<Item = String> + use<> {
        let receivers = (1..=self.receivers.len()).map(|number| format!("receiver{number}"));
        std::iter::once(SENDER_PORT.to_owned()).chain(receivers)
    }

    /// Moves the calling thread to the switch, whose counters it then reads.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn enter_switch(&self) -> Result<(), String> {
        self.switch.namespace().enter().map_err(|error| error.to_string())
    }

    /// UDP payload that the sender has sent. For a thread that has entered the switch.
    pub(crate) fn sent() -> u64 {
        let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        proc::udp_payload_received(&text, SENDER_PORT).unwrap()
    }

    /// Packets that the queues in front of the receivers have let pass and dropped since their
    /// start. For a thread that has entered the switch.
    ///
    /// # Errors
    /// `tc` fails.
    pub(crate) fn queued(&self) -> Result<proc::QueueCounters, String> {
        let text = command(self.switch.namespace(), "tc", &["-s", "qdisc", "show"], "")?;
        Ok(proc::queue_counters(&text))
    }

    /// Datagrams that the receivers' kernels have dropped since their start.
    pub(crate) fn kernel_drops(&self) -> u64 {
        let snmp = || fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let texts = self.receivers.iter().map(|host| host.within(snmp).unwrap());
        texts.map(|text| proc::receive_buffer_errors(&text).unwrap()).sum()
    }
}

/// The address of a host.
pub(crate) fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 77, 0, 1).to_bits() + number as u32)
}

/// Makes the kernel of these interfaces divide GSO batches into frames, and not join them again.
fn segment_in_software(
    host: &Namespace,
    interfaces: impl IntoIterator<Item = String>,
) -> Result<(), String> {
    for interface in interfaces {
        let options = ["-K", &interface, "tx-udp-segmentation", "off", "gro", "off"];
        command(host, "ethtool", &options, "")?;
    }
    Ok(())
}

/// Drops this share of the UDP datagrams that arrive at a host, at random, each independently.
fn lose(host: &Namespace, percent: u32) -> Result<(), String> {
    let rules = format!(
        "table inet loss {{
           chain input {{
             type filter hook input priority 0;
             meta l4proto udp numgen random mod 100 < {percent} drop
           }}
         }}\n"
    );
    command(host, "nft", &["-f", "-"], &rules).map(drop)
}

/// What a program prints on a host with this standard input.
pub(crate) fn command(
    host: &Namespace,
    program: &str,
    words: &[&str],
    input: &str,
) -> Result<String, String> {
    let failed = |said: String| format!("{program} {}: {said}", words.join(" "));
    let run = || {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        child.stdin.take().map_or(Ok(()), |mut to| to.write_all(input.as_bytes()))?;
        child.wait_with_output()
    };
    let output = host.within(run).map_err(|error| failed(error.to_string()))?;
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}
