//! Warnings of a sender about the network.

use crate::interfaces::{self, Side};
use fontana::SendEvent;
use fontana::net::{LossCause, MissingNeighbor, MtuDrop, SendLoss};
use fontana::wire::Tsi;
use fontana_console::console::Console;
use fontana_console::units::Count;

/// Shows an event that is a warning.
pub(super) fn show(event: &SendEvent, console: &Console) {
    match event {
        SendEvent::MtuDropped(drop) => show_mtu(drop, console),
        SendEvent::NotSent(loss) => show_loss(loss, console),
        SendEvent::NoNeighbor(missing) => show_neighbor(missing, console),
        SendEvent::Interface(change) => interfaces::show(change, Side::Sender, console),
        SendEvent::Ungranted(refused) => interfaces::show_ungranted(refused, console),
        SendEvent::NumberInUse { tsi } => show_number(*tsi, console),
        _ => {}
    }
}

/// Shows how many packets were lost in this host, at the end.
pub(super) fn show_lost(lost: u64, console: &Console) {
    if lost > 0 {
        let message = format!("this host could not send {}", Count(lost, "packet"));
        console.warning(&message, "the reason was reported with the first one");
    }
}

fn show_number(tsi: Tsi, console: &Console) {
    let message = format!("another program on this host sends a session with the number {}", tsi.0);
    console.warning(
        &message,
        "receivers take both for one session: end one of them, or give it a number or a group of \
         its own (--to GROUP:PORT/N)",
    );
}

fn show_mtu(drop: &MtuDrop, console: &Console) {
    let of_interface = drop.interface.as_ref().map_or(String::new(), |name| format!(" of {name}"));
    let message = format!(
        "the MTU{of_interface} was lowered: packets of {} bytes do not fit, and are lost",
        drop.payload_size,
    );
    console.warning(
        &message,
        "raise it again, and they are sent; or send smaller packets (--symbol-size)",
    );
}

fn show_loss(loss: &SendLoss, console: &Console) {
    let message = format!("packets to {} cannot be sent: {}", loss.to, loss.error());
    let hint = match loss.cause {
        LossCause::NoBufferSpace => {
            "a queue of this host is full: lower the rate (--rate), or lengthen the queue \
             (ip link set INTERFACE txqueuelen N)"
        }
        LossCause::Stalled => {
            "the interface takes no packets: see its state (ip -s link), or lower the rate (--rate)"
        }
        LossCause::Unreachable => "see the link and the route: ip link; ip route",
        LossCause::Refused => "no receiver has opened this port there; sending continues",
        LossCause::NotPermitted => {
            "a packet filter of this host forbids them: nft list ruleset; iptables -S OUTPUT"
        }
        LossCause::TooLarge => "raise the MTU, or send smaller packets (--symbol-size)",
    };
    console.warning(&message, hint);
}

fn show_neighbor(missing: &MissingNeighbor, console: &Console) {
    let MissingNeighbor { host, next_hop, interface } = missing;
    let message = format!(
        "packets to {host} do not leave this host: {next_hop} does not answer on {interface}"
    );
    let hint = format!(
        "see that it is switched on, and on this network; where no answer can come back, add its \
         hardware address on this host:\nip neigh replace {next_hop} lladdr MAC dev {interface} \
         nud permanent"
    );
    console.warning(&message, &hint);
}
