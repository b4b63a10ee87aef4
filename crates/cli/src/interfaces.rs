//! Warnings about interfaces that vanish, and about what the system refuses for a socket.

use fontana::net::{InterfaceChange, OptionalSetting, Ungranted};
use fontana_console::console::Console;

/// The end of a session that an interface is used by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

/// Shows that an interface is gone, or back.
pub(crate) fn show(change: &InterfaceChange, side: Side, console: &Console) {
    let (message, hint) = describe(change, side);
    console.warning(&message, &hint);
}

fn describe(change: &InterfaceChange, side: Side) -> (String, String) {
    match (change, side) {
        (InterfaceChange::Gone { interface }, Side::Receiver) => (
            format!("interface {interface} is gone: nothing can be received on it"),
            "the receiver goes on, and joins again when an interface of this name is back".into(),
        ),
        (InterfaceChange::Gone { interface }, Side::Sender) => (
            format!("interface {interface} is gone, or has no address: packets are lost"),
            "the sender goes on, and sends again when an interface of this name is back".into(),
        ),
        (InterfaceChange::Back { interface, .. }, Side::Receiver) => (
            format!("interface {interface} is back, and its groups are joined again"),
            String::new(),
        ),
        (InterfaceChange::Back { interface, source: None }, Side::Sender) => {
            (format!("interface {interface} is back, and is used again"), String::new())
        }
        (InterfaceChange::Back { interface, source: Some(source) }, Side::Sender) => (
            format!("packets are sent from {source} now, the address that {interface} has"),
            format!(
                "receivers whose ticket names the address of before do not take them: start the \
                 sender again, and give out its ticket, or give {interface} the old address"
            ),
        ),
    }
}

/// Shows what the system refuses, and the session goes on without.
pub(crate) fn show_ungranted(refused: &Ungranted, console: &Console) {
    let (what, hint) = describe_setting(refused.setting);
    let reason = match refused.errno {
        0 => String::new(),
        _ => format!(": {}", refused.error()),
    };
    console.warning(&format!("this system refuses to {what}{reason}"), hint);
}

fn describe_setting(setting: OptionalSetting) -> (&'static str, &'static str) {
    let as_usual = "the session goes on with what the system does without it";
    match setting {
        OptionalSetting::ReceiveBuffer => {
            ("set the size of the receive buffer", "packets that arrive in a burst may be lost")
        }
        OptionalSetting::SendBuffer => ("set the size of the send buffer", as_usual),
        OptionalSetting::SendTimeout => {
            ("limit the wait for the interface", "Ctrl-C may take longer while it takes nothing")
        }
        OptionalSetting::ReceiveOffload => {
            ("merge packets that arrive", "the receiver needs more of the processor")
        }
        OptionalSetting::OwnGroups => ("keep the groups of other programs away", as_usual),
        OptionalSetting::SharedPort => {
            ("share the port", "a second receiver on this host cannot use it")
        }
        OptionalSetting::OnlyVersion6 => ("limit a socket to IPv6", as_usual),
        OptionalSetting::NoFragments => (
            "forbid fragments",
            "packets that exceed the MTU are fragmented, and are lost more often",
        ),
        OptionalSetting::TrafficClass => {
            ("mark the traffic class", "networks treat the packets as all others")
        }
        OptionalSetting::HopLimit => (
            "set the hop limit of multicast",
            "packets reach this network only, whatever --ttl says",
        ),
        OptionalSetting::LocalCopies => ("choose whether this host gets copies", as_usual),
        OptionalSetting::BroadcastInterface => {
            ("choose the interface of broadcasts", "the routing table chooses it")
        }
        _ => ("set an option of a socket", as_usual),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_source_address_names_the_ticket() {
        let back = |source: Option<&str>| InterfaceChange::Back {
            interface: "eth0".into(),
            source: source.map(|ip| ip.parse().unwrap()),
        };
        let (message, hint) = describe(&back(Some("10.0.0.9")), Side::Sender);
        assert!(message.contains("10.0.0.9") && hint.contains("ticket"), "{message}: {hint}");
        let (message, hint) = describe(&back(None), Side::Receiver);
        assert!(message.contains("eth0 is back") && hint.is_empty(), "{message}: {hint}");
    }
}
