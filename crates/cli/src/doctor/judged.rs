//! What the probes that arrived say of the path, and the likeliest cause of what is wrong.

use super::counts::{Counts, Run, Tally};
use super::place::Place;
use super::probe::SIZES;
use fontana::net::doctor::{self, Finding, Verdict};
use fontana_console::units::{Count, ExactRate, Percent};
use std::net::IpAddr;
use std::time::Duration;

/// Largest number of runs that are shown.
const MAX_SHOWN: usize = 4;

/// A share of losses that says nothing: one probe of the slowest rate.
const NOISE: f64 = 0.005;

/// A share by which losses have to grow for a rate to be too high.
const GROWTH: f64 = 0.03;

/// A run that has paused for so long has ended, or arrives no more.
const SILENCE: Duration = Duration::from_secs(5);

/// How long a switch that snoops remembers a member that no querier asks: 260 s by RFC 3376 section
/// 8.4, and less with other settings.
const FORGOTTEN: std::ops::Range<u64> = 200..300;

/// The payload of a default session's packets.
const DEFAULT_SIZE: u16 = 1400;

/// Bytes of a packet that are no symbol, at most.
const OVERHEAD: u16 = 56;

/// Symbols have multiples of this size.
const SYMBOL: u16 = 64;

/// One finding for each line of the table. `now`: how long this host listened.
pub(super) fn findings(counts: &Counts, place: &Place, now: Duration) -> Vec<Finding> {
    let interface = &place.interface.name;
    let runs = counts.runs();
    if runs.is_empty() {
        let text = format!("none arrived on {interface} in {:.0} s", now.as_secs_f64());
        let remedy = Some("let another host send some: fontana doctor --send".to_owned());
        return vec![Finding { remedy, ..finding("probes", Verdict::Unknown, text) }];
    }
    let mut findings: Vec<Finding> =
        runs.iter().take(MAX_SHOWN).flat_map(|run| of_run(run, interface)).collect();
    let more = runs.len().saturating_sub(MAX_SHOWN);
    if more > 0 || counts.uncounted > 0 {
        let text = format!(
            "probes of {} arrive, and {} of still others",
            Count(more as u64, "further run"),
            Count(counts.uncounted, "probe")
        );
        findings.push(finding("further probes", Verdict::Warning, text));
    }
    findings
}

fn finding(subject: impl Into<String>, verdict: Verdict, text: impl Into<String>) -> Finding {
    Finding { subject: subject.into(), verdict, text: text.into(), remedy: None }
}

fn of_run(run: &Run, interface: &str) -> Vec<Finding> {
    let from = run.from;
    let mut findings = vec![sizes(run, interface)];
    for (rate, tally) in run.cycle.rates().iter().zip(run.rates) {
        let (Some(lost), Some(dropped)) = (tally.loss(), tally.dropped()) else { continue };
        let verdict = match lost + dropped {
            share if share <= NOISE => Verdict::Good,
            _ if tally.arrived == 0 => Verdict::Bad,
            _ => Verdict::Warning,
        };
        let text = format!(
            "{} lost in the network, {} dropped by this host ({} of {} arrived)",
            Percent(Some(lost)),
            Percent(Some(dropped)),
            tally.arrived,
            tally.sent
        );
        let subject = format!("probes of {from} at {}", ExactRate(*rate));
        findings.push(finding(subject, verdict, text));
    }
    findings
}

/// Sizes of which probes have arrived, and larger ones of which whole steps brought none.
fn passed(run: &Run) -> (Vec<u16>, Vec<u16>) {
    let of_run = || run.cycle.sizes().iter().zip(run.sizes);
    let arrived = of_run().filter(|(_, tally)| tally.arrived > 0);
    let arrived: Vec<u16> = arrived.map(|(size, _)| *size).collect();
    let largest = arrived.last().copied().unwrap_or(u16::MAX);
    let is_missing = |(size, tally): &(&u16, Tally)| **size > largest && tally.sent > 0;
    let missing = of_run().filter(is_missing).map(|(size, _)| *size).collect();
    (arrived, missing)
}

fn sizes(run: &Run, interface: &str) -> Finding {
    let subject = format!("sizes of probes of {}", run.from);
    let (arrived, missing) = passed(run);
    let mut text = match arrived.last() {
        Some(largest) => format!("up to {largest} bytes arrive on {interface}"),
        None => format!("none arrives on {interface}"),
    };
    if let Some(smallest) = missing.first() {
        text = format!("{text}, those of {smallest} bytes do not");
    } else if run.cycle.sizes().len() < SIZES.len() {
        text = format!("{text}, the sender's interface carries no more");
    }
    let too_small = missing.iter().any(|size| *size <= DEFAULT_SIZE);
    let verdict = if too_small { Verdict::Warning } else { Verdict::Good };
    Finding {
        remedy: too_small.then(|| smaller_symbols(&arrived)),
        ..finding(subject, verdict, text)
    }
}

fn smaller_symbols(arrived: &[u16]) -> String {
    let room = arrived.last().copied().unwrap_or_default().saturating_sub(OVERHEAD);
    let symbol = (room / SYMBOL).max(1) * SYMBOL;
    format!("fontana send --symbol-size {symbol}, or raise the MTU of the path")
}

/// The likeliest cause of what is wrong with the path, or that nothing is. `local`: what was found
/// at this host. `now`: how long it listened.
pub(super) fn likely(counts: &Counts, place: &Place, local: &[Finding], now: Duration) -> String {
    let runs = counts.runs();
    let mut causes = match runs.is_empty() {
        true => vec![nothing(place, local)],
        false => runs.iter().take(MAX_SHOWN).map(|run| cause(run, now)).collect(),
    };
    causes.extend(no_querier(local));
    causes.join("; ")
}

/// No probe has arrived.
fn nothing(place: &Place, local: &[Finding]) -> String {
    this_host(place, local).unwrap_or_else(|| {
        "no host sends probes here (fontana doctor --send), or, if one does, the network passes no \
         multicast on: a switch, an access point or a hypervisor between them"
            .to_owned()
    })
}

/// What keeps packets from this host's interface or from its programs, the firewall first.
pub(super) fn this_host(place: &Place, local: &[Finding]) -> Option<String> {
    let is_firewall = |found: &&Finding| found.subject == doctor::FIREWALL;
    let is_of_place = |found: &&Finding| {
        found.subject.rsplit(' ').next() == Some(&place.interface.name)
            && found.subject.starts_with("IPv6") == place.group.is_ipv6()
    };
    let bad = || local.iter().filter(|found| found.verdict == Verdict::Bad);
    let found = bad().find(is_firewall).or_else(|| bad().find(is_of_place));
    found.map(|Finding { subject, text, .. }| format!("{subject}: {text}"))
}

/// That no query was received for so long that there is no querier.
pub(super) fn no_querier(local: &[Finding]) -> Option<String> {
    let found = local.iter().find(|found| found.subject == doctor::QUERIER)?;
    (found.verdict == Verdict::Warning).then(|| {
        let text = &found.text;
        format!("IGMP querier: {text}: a switch that snoops forgets members after about 260 s")
    })
}

fn cause(run: &Run, now: Duration) -> String {
    let from = run.from;
    let causes = [ended(run, now), size(run), host(run), loss(run)];
    let causes: Vec<_> = causes.into_iter().flatten().collect();
    if !causes.is_empty() {
        return format!("{from}: {}", causes.join("; "));
    }
    match highest(run) {
        Some((size, rate)) => works(from, size, rate),
        None => format!("{from}: its probes arrive, too few to judge: --for 30s"),
    }
}

fn works(from: IpAddr, size: u16, rate: u64) -> String {
    let rate = ExactRate(rate);
    format!("{from}: multicast passes to this host, at {rate} and with packets of {size} bytes")
}

/// The largest size and the highest rate that arrive.
fn highest(run: &Run) -> Option<(u16, u64)> {
    let (arrived, _) = passed(run);
    let mut rates = run.cycle.rates().iter().zip(run.rates).rev();
    let (rate, _) = rates.find(|(_, tally)| tally.arrived > 0)?;
    Some((*arrived.last()?, *rate))
}

fn ended(run: &Run, now: Duration) -> Option<String> {
    if now.saturating_sub(run.last) < SILENCE {
        return None;
    }
    let seconds = run.last.as_secs();
    Some(match FORGOTTEN.contains(&seconds) {
        true => format!(
            "its probes stopped after {seconds} s: a switch that snoops has forgotten this member, \
             because no querier asks: enable one, or the sender has ended"
        ),
        false => format!(
            "its probes stopped after {seconds} s: the sender has ended, or the network passes them \
             on no longer"
        ),
    })
}

fn size(run: &Run) -> Option<String> {
    let (arrived, missing) = passed(run);
    let smallest = missing.iter().find(|size| **size <= DEFAULT_SIZE)?;
    let remedy = smaller_symbols(&arrived);
    Some(format!("packets of {smallest} bytes exceed the MTU of a link on the path: {remedy}"))
}

fn host(run: &Run) -> Option<String> {
    let mut rates = run.cycle.rates().iter().zip(run.rates);
    let (rate, dropped) = rates.find_map(|(rate, tally)| {
        Some((*rate, tally.dropped().filter(|dropped| *dropped > NOISE)?))
    })?;
    let (dropped, rate) = (Percent(Some(dropped)), ExactRate(rate));
    Some(format!("this host drops {dropped} at {rate}: it is busy, or its receive buffer is small"))
}

fn loss(run: &Run) -> Option<String> {
    let rates: Vec<(u64, Tally)> = run
        .cycle
        .rates()
        .iter()
        .copied()
        .zip(run.rates)
        .filter(|(_, tally)| tally.sent > 0)
        .collect();
    let (_, slowest) = rates.first()?;
    // By chance the slowest rate loses less: three standard deviations.
    let base = slowest.loss()?;
    let most = base + GROWTH + 3.0 * (base * (1.0 - base) / slowest.sent as f64).sqrt();
    let is_too_high = |(_, tally): &(u64, Tally)| tally.loss().is_some_and(|lost| lost > most);
    let end = rates.iter().position(is_too_high).unwrap_or(rates.len());
    let below = rates.get(..end).unwrap_or_default();
    let at_any = below.iter().fold(Tally::default(), |sum, (_, tally)| sum.and(*tally)).loss()?;
    // What does not fit is not lost by a queue.
    let at_any = (at_any > NOISE && base < 1.0).then(|| {
        let share = Percent(Some(at_any));
        format!("{share} are lost at any rate: a radio link, or a cable or port with errors")
    });
    let by_rate = below.last().zip(rates.get(end)).map(|((carried, _), (rate, tally))| {
        let (lost, carried, rate) = (Percent(tally.loss()), ExactRate(*carried), ExactRate(*rate));
        format!("{lost} are lost at {rate}: the path carries {carried}, and not {rate}")
    });
    let causes: Vec<_> = [at_any, by_rate].into_iter().flatten().collect();
    (!causes.is_empty()).then(|| causes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::probe::{Probe, Step};

    const FROM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 1));

    fn place() -> Place {
        let interface = fontana::net::Interface {
            name: "eth0".to_owned(),
            index: 2,
            addresses: Vec::new(),
            mtu: 1500,
            is_up: true,
            is_multicast: true,
            is_loopback: false,
        };
        Place { group: crate::doctor::probe::GROUP, interface }
    }

    /// What is said of a run of which `arrives` lets probes pass.
    fn said(arrives: impl Fn(&Probe, usize) -> bool) -> (String, Vec<Finding>) {
        let mut counts = Counts::default();
        counts.feed(FROM, 1, 0..9, arrives);
        let now = Duration::from_secs(9);
        (likely(&counts, &place(), &[], now), findings(&counts, &place(), now))
    }

    fn verdicts(findings: &[Finding]) -> Vec<Verdict> {
        findings.iter().map(|found| found.verdict).collect()
    }

    fn rate_of(probe: &Probe) -> Option<usize> {
        match probe.cycle.step(probe.step) {
            Step::Rate(index) => Some(index),
            Step::Sizes => None,
        }
    }

    #[test]
    fn a_good_path_is_good() {
        let (likely, findings) = said(|_, _| true);
        let works = "10.77.0.1: multicast passes to this host, at 100 Mbit/s and with packets of \
                     1472 bytes";
        assert_eq!(likely, works);
        assert_eq!(verdicts(&findings), [Verdict::Good; 4]);
        assert_eq!(findings[3].subject, "probes of 10.77.0.1 at 100 Mbit/s");
        assert!(findings[3].text.contains("(23452 of 23452 arrived)"), "{findings:?}");
        let sizes = "up to 1472 bytes arrive on eth0, the sender's interface carries no more";
        assert_eq!(findings[0].text, sizes);
    }

    #[test]
    fn losses_at_any_rate_and_by_the_rate_are_distinguished() {
        let every = |count: u32| move |probe: &Probe, _: usize| !probe.index.is_multiple_of(count);
        let (likely, findings) = said(every(10));
        assert!(likely.starts_with("10.77.0.1: 10.0 % are lost at any rate"), "{likely}");
        assert!(!likely.contains("carries"), "{likely}");
        assert_eq!(verdicts(&findings)[1..], [Verdict::Warning; 3]);

        let fast = |probe: &Probe| rate_of(probe) == Some(2);
        let (likely, findings) = said(|probe, _| !fast(probe) || probe.index % 5 == 0);
        let carries = "80.0 % are lost at 100 Mbit/s: the path carries 20 Mbit/s, and not 100";
        assert!(likely.contains(carries) && !likely.contains("any rate"), "{likely}");
        assert_eq!(verdicts(&findings)[2..], [Verdict::Good, Verdict::Warning]);

        let (likely, findings) = said(|probe, _| !fast(probe));
        assert!(likely.contains("100.0 % are lost at 100 Mbit/s"), "{likely}");
        assert_eq!(verdicts(&findings)[3], Verdict::Bad);
    }

    #[test]
    fn packets_that_are_too_large_need_smaller_symbols() {
        let (likely, findings) = said(|_, length| length <= 1200);
        let told = "10.77.0.1: packets of 1300 bytes exceed the MTU of a link on the path: fontana \
                    send --symbol-size 1088, or raise the MTU of the path";
        assert_eq!(likely, told);
        assert_eq!(findings[0].verdict, Verdict::Warning);
        // The largest arrive: no size is the cause.
        let (likely, _) = said(|probe, length| length == 1472 || probe.index % 50 == 1);
        assert!(likely.contains("are lost at any rate") && !likely.contains("MTU"), "{likely}");
        let (likely, _) = said(|_, length| length < 1000);
        assert!(likely.contains("packets of 1000 bytes") && !likely.contains("lost"), "{likely}");
        let (likely, findings) = said(|_, length| length < 1472);
        assert!(likely.contains("with packets of 1400 bytes"), "{likely}");
        assert!(findings[0].text.ends_with("those of 1472 bytes do not"), "{findings:?}");
    }

    #[test]
    fn what_this_host_drops_is_said_apart() {
        let mut counts = Counts::default();
        counts.feed(FROM, 1, 0..3, |_, _| true);
        counts.feed(FROM, 1, 3..4, |probe, _| probe.index % 2 == 0);
        counts.drop(20_000);
        counts.feed(FROM, 1, 4..6, |_, _| true);
        let now = Duration::from_secs(6);
        let likely = likely(&counts, &place(), &[], now);
        assert!(likely.contains("this host drops 50.0 % at 100 Mbit/s"), "{likely}");
        assert!(!likely.contains("are lost"), "{likely}");
    }

    #[test]
    fn without_probes_the_cause_is_here_or_in_the_network() {
        let (counts, now) = (Counts::default(), Duration::from_secs(3));
        let firewall = finding(doctor::FIREWALL, Verdict::Bad, "a rule drops packets");
        let other = finding("IPv6 multicast on eth0", Verdict::Bad, "not heard");
        let told = likely(&counts, &place(), &[other, firewall], now);
        assert_eq!(told, "firewall: a rule drops packets");
        let [link, other] = [("link of eth0", "no carrier"), ("IPv6 multicast on eth0", "no")]
            .map(|(subject, text)| finding(subject, Verdict::Bad, text));
        assert_eq!(likely(&counts, &place(), &[other, link], now), "link of eth0: no carrier");
        assert!(likely(&counts, &place(), &[], now).contains("passes no multicast on"));
        assert_eq!(findings(&counts, &place(), now)[0].verdict, Verdict::Unknown);
    }

    #[test]
    fn a_switch_that_forgets_is_told_from_a_sender_that_ends() {
        let querier = finding(doctor::QUERIER, Verdict::Warning, "none heard in 300 s");
        let after = |steps: u32| {
            let mut counts = Counts::default();
            counts.feed(FROM, 1, 0..steps, |_, _| true);
            likely(&counts, &place(), std::slice::from_ref(&querier), Duration::from_secs(300))
        };
        assert!(after(41).contains("stopped after 40 s: the sender has ended"), "{}", after(41));
        assert!(after(41).contains("; IGMP querier: none heard in 300 s"), "{}", after(41));
        assert!(after(261).contains("has forgotten this member"), "{}", after(261));
    }

    #[test]
    fn what_strangers_send_is_said_of_them_and_few_are_shown() {
        let mut counts = Counts::default();
        counts.feed(FROM, 1, 0..6, |_, _| true);
        for number in 2..9 {
            let stranger = std::net::Ipv4Addr::new(10, 77, 0, number).into();
            counts.feed(stranger, 1, 4..6, |probe, _| probe.index == 1);
        }
        let now = Duration::from_secs(6);
        let likely = likely(&counts, &place(), &[], now);
        assert!(likely.starts_with("10.77.0.1: multicast passes to this host"), "{likely}");
        assert_eq!(likely.matches("too few to judge").count(), MAX_SHOWN - 1, "{likely}");
        assert!(findings(&counts, &place(), now).len() <= MAX_SHOWN * 4 + 1);
    }
}
