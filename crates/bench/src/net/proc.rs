//! Counters of processes, interfaces and the host, from the texts of proc(5).

use std::net::Ipv4Addr;
use std::time::Duration;

/// Clock ticks of a second in `/proc/PID/stat` (`USER_HZ`: 100 on every architecture but one).
const TICK: Duration = Duration::from_millis(10);

/// Headers of Ethernet, IPv4 and UDP.
const FRAME_HEADERS: u64 = 14 + 20 + 8;

/// UDP payload in bytes of what an interface has received, in a text of `/proc/net/dev`. A GSO
/// batch counts as one packet with one set of headers, so this holds with offload too.
pub(crate) fn udp_payload_received(text: &str, interface: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.trim_start().split_once(':'));
    let (_, counters) = lines.find(|(name, _)| *name == interface)?;
    let mut counters = counters.split_whitespace().map(str::parse::<u64>);
    let (bytes, packets) = (counters.next()?.ok()?, counters.next()?.ok()?);
    Some(bytes.saturating_sub(FRAME_HEADERS * packets))
}

/// Whether a host is a member of a group, in a text of `/proc/net/igmp`.
pub(crate) fn is_member(text: &str, group: Ipv4Addr) -> bool {
    // The address in network byte order, printed as a number of this host.
    let number = format!("{:08X}", u32::from_ne_bytes(group.octets()));
    text.lines().any(|line| line.split_whitespace().next() == Some(&number))
}

/// Whether a text of `/proc/net/udp` lists a socket.
pub(crate) fn has_socket(text: &str) -> bool {
    text.lines().nth(1).is_some()
}

/// Datagrams that found a full receive buffer, in a text of `/proc/net/snmp`.
pub(crate) fn receive_buffer_errors(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
    let mut names = lines.next()?.split_whitespace();
    let values = lines.next()?.split_whitespace();
    let (_, value) = names.by_ref().zip(values).find(|(name, _)| *name == "RcvbufErrors")?;
    value.parse().ok()
}

/// Packets of queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueCounters {
    pub(crate) passed: u64,
    pub(crate) dropped: u64,
}

impl QueueCounters {
    /// Per cent of the packets since `before` that were dropped.
    pub(crate) fn loss_since(self, before: Self) -> f64 {
        let (passed, dropped) = (self.passed - before.passed, self.dropped - before.dropped);
        100.0 * dropped as f64 / (passed + dropped).max(1) as f64
    }
}

/// The sums over all token buckets in what `tc -s qdisc show` prints.
pub(crate) fn queue_counters(text: &str) -> QueueCounters {
    let mut counters = QueueCounters::default();
    let mut is_bucket = false;
    for line in text.lines() {
        if line.starts_with("qdisc") {
            is_bucket = line.starts_with("qdisc tbf");
        }
        // ` Sent 1234 bytes 56 pkt (dropped 7, overlimits 8 requeues 9)`
        let before = |word: &str| line.split(word).next()?.rsplit(' ').next()?.parse::<u64>().ok();
        let after = |word: &str| line.split_once(word)?.1.split(',').next()?.parse::<u64>().ok();
        if is_bucket && line.trim_start().starts_with("Sent ") {
            counters.passed += before(" pkt").unwrap_or(0);
            counters.dropped += after("(dropped ").unwrap_or(0);
        }
    }
    counters
}

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProcessTimes {
    /// It has ended, and its parent has not waited for it.
    pub(crate) has_ended: bool,
    /// Processor time of all its threads, in user and kernel mode.
    pub(crate) processor: Duration,
}

pub(crate) fn process_times(stat: &str) -> Option<ProcessTimes> {
    // The name of the program is in parentheses and may contain some.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u32>().ok();
    let has_ended = matches!(*fields.first()?, "Z" | "X");
    Some(ProcessTimes { has_ended, processor: TICK * (ticks(11)? + ticks(12)?) })
}

/// Anonymous resident memory in bytes, in a text of `/proc/PID/status`.
pub(crate) fn anonymous_memory(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Times of all processors since the host's start, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostTimes {
    total: u64,
    steal: u64,
}

impl HostTimes {
    /// From a text of `/proc/stat`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fields = text.lines().next()?.strip_prefix("cpu ")?;
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
        let ticks: Vec<u64> =
            fields.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { total: ticks.iter().sum(), steal: *ticks.get(7)? })
    }

    /// Per cent of the time since `before` in which the hypervisor ran something else.
    pub(crate) fn steal_since(self, before: Self) -> f64 {
        let total = self.total.saturating_sub(before.total).max(1);
        100.0 * self.steal.saturating_sub(before.steal) as f64 / total as f64
    }
}

#[cfg(test)]
mod tests {
    #[allow(unused_imports)]
    use super::*;

    #[test]
    fn payload_is_what_is_left_of_the_frames() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 1 2 0\n sender:  14060      10    0\n";
        assert_eq!(udp_payload_received(text, "sender"), Some(14_060 - 420));
        assert_eq!(udp_payload_received(text, "other"), None);
    }

    #[test]
    fn a_membership_is_found_by_its_number() {
        let text = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
                    1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n";
        let all_systems = Ipv4Addr::new(224, 0, 0, 1);
        assert_eq!(is_member(text, all_systems), cfg!(target_endian = "little"));
        assert!(!is_member(text, Ipv4Addr::new(239, 255, 77, 1)));
    }

    #[test]
    fn drops_are_found_by_name() {
        let text = "Ip: A B\nIp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
                    Udp: 10 20 30 40 50\nUdpLite: InDatagrams RcvbufErrors\nUdpLite: 1 2\n";
        assert_eq!(receive_buffer_errors(text), Some(50));
    }

    #[test]
    fn only_token_buckets_count_as_queues() {
        let text = "qdisc noqueue 0: dev lo root refcnt 2 \n Sent 5 bytes 5 pkt (dropped 5, \
                    overlimits 0 requeues 0) \nqdisc tbf 8001: dev receiver1 root refcnt 2 \n \
                    Sent 4188 bytes 30 pkt (dropped 10, overlimits 7 requeues 0) \n backlog 0b\n";
        let counters = queue_counters(text);
        assert_eq!(counters, QueueCounters { passed: 30, dropped: 10 });
        assert_eq!(counters.loss_since(QueueCounters::default()), 25.0);
    }

    #[test]
    fn times_of_a_process_follow_its_name() {
        let stat = "77 (a) b) Z 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0 1";
        let times = ProcessTimes { has_ended: true, processor: Duration::from_millis(1750) };
        assert_eq!(process_times(stat), Some(times));
    }

    #[test]
    fn memory_and_steal_are_read() {
        assert_eq!(anonymous_memory("VmRSS:\t 9 kB\nRssAnon:\t    12 kB\n"), Some(12 << 10));
        let times = |text| HostTimes::parse(text).unwrap();
        let (before, after) =
            (times("cpu  10 0 10 70 0 0 0 10 5 0\n"), times("cpu  20 0 20 140 0 0 0 20 9 0\n"));
        assert_eq!(after.steal_since(before), 10.0);
    }
}
