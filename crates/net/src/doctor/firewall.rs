//! A hint whether a packet filter of this host blocks packets.
//!
//! The probe reads the rules of nftables and iptables as text and looks for rules that drop packets
//! to a destination, and for an input policy of "drop", which all common front ends use to close a
//! host. It can miss other rules. Reading rules needs root.

use std::io::Read;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::rules::{self, Drops};
use super::{Finding, Verdict};
use crate::thread;

/// Time limit of a program that lists rules. Listing takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// More rules than this are not read.
const MAX_OUTPUT: u64 = 4 << 20;

/// The subject of the finding of [`firewall`].
pub const FIREWALL: &str = "firewall";

/// Looks for rules that drop packets to this address, and for an input policy of "drop".
pub fn firewall(to: Option<SocketAddr>) -> Finding {
    let subject = FIREWALL;
    let nft = output("nft", &["list", "ruleset"]);
    let iptables = output("iptables", &["-S", "INPUT"]);
    let dropped = to.and_then(|to| {
        let of_nft = nft.as_deref().and_then(|rules| rules::of_nft(rules, to));
        of_nft.or_else(|| rules::of_iptables(iptables.as_deref()?, to)).map(|drops| (to, drops))
    });
    if let Some((to, Drops { rule, all })) = dropped {
        let (verdict, drops) = match all {
            true => (Verdict::Bad, "drops"),
            false => (Verdict::Warning, "may drop"),
        };
        return Finding::new(subject, verdict, format!("a rule {drops} packets to {to}: {rule}"))
            .remedy(
                "remove the rule (nft -a list ruleset, iptables -S), or accept them before it",
            );
    }
    let closed = [
        nft.as_deref().is_some_and(nft_drops_input),
        iptables.as_deref().is_some_and(iptables_drops_input),
    ];
    match (closed, nft.is_some() || iptables.is_some()) {
        ([true, _] | [_, true], _) => Finding::new(
            subject,
            Verdict::Warning,
            "the input policy is to drop what no rule accepts: a receiver may hear nothing",
        )
        .remedy("accept the session's UDP port, for example: nft insert rule inet filter input udp dport 7701 accept"),
        (_, true) => Finding::new(subject, Verdict::Good, "no input policy of \"drop\" found"),
        (_, false) => Finding::new(
            subject,
            Verdict::Unknown,
            "the rules cannot be read (no nft or iptables here, or not root)",
        ),
    }
}

/// True if a base chain at the input hook has the policy "drop", in the output of
/// `nft list ruleset`.
fn nft_drops_input(ruleset: &str) -> bool {
    ruleset.lines().any(|line| line.contains("hook input") && line.contains("policy drop"))
}

/// The same in the output of `iptables -S INPUT`.
fn iptables_drops_input(rules: &str) -> bool {
    rules.lines().any(|line| line.trim() == "-P INPUT DROP")
}

/// The output of a program; `None` if it is missing, fails, or exceeds the time limit.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let stdout = child.stdout.take()?;
    // Read on another thread: a child with much output would block on a full pipe.
    let reader = thread::spawn("rules", move || {
        let mut text = Vec::new();
        stdout.take(MAX_OUTPUT).read_to_end(&mut text).map(|_| text)
    });
    let Ok(reader) = reader else {
        end(&mut child);
        return None;
    };
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if started.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            _ => {
                end(&mut child);
                break None;
            }
        }
    };
    let text = reader.join().ok()?.ok()?;
    status?.success().then(|| String::from_utf8_lossy(&text).into_owned())
}

/// Kills a program. That closes its pipe, so a thread that reads from it ends too.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_input_chain_is_recognised_and_others_are_not() {
        let chain = |hook: &str, policy: &str| {
            format!(
                "table inet filter {{\n\tchain c {{\n\t\ttype filter hook {hook} priority filter; \
                 policy {policy};\n\t}}\n}}\n"
            )
        };
        assert!(nft_drops_input(&chain("input", "drop")));
        assert!(!nft_drops_input(&chain("input", "accept")));
        assert!(!nft_drops_input(&chain("forward", "drop")));
        assert!(!nft_drops_input(""));
        assert!(iptables_drops_input("-P INPUT DROP\n-A INPUT -i lo -j ACCEPT\n"));
        assert!(!iptables_drops_input("-P INPUT ACCEPT\n-A INPUT -j DROP\n"));
    }

    #[test]
    fn programs_that_are_missing_or_fail_or_hang_give_no_output() {
        assert_eq!(output("fontana-no-such-program", &[]), None);
        assert_eq!(output("false", &[]), None);
        assert_eq!(output("echo", &["rules"]).as_deref(), Some("rules\n"));
        let started = Instant::now();
        assert_eq!(output("sleep", &["60"]), None);
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
