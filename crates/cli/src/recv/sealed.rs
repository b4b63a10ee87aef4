//! What a receiver says if its group key and the sender's do not fit.

use fontana::ReceiveProgress;
use fontana_console::units::Count;

/// The message and the hint if all packets were dropped because they have no valid tag, or because
/// they are encrypted and no group key was given. `place`: address and interface.
pub(super) fn mismatch(progress: &ReceiveProgress, place: &str) -> Option<(String, String)> {
    let (stats, rejected) = (&progress.stats, &progress.rejected);
    if stats.session_packets > 0 {
        return None;
    }
    if stats.encrypted > 0 {
        let packets = Count(stats.encrypted, "packet");
        let message = format!("the session on {place} is encrypted: {packets} cannot be read");
        let hint = "give the ticket that its sender has printed\nor the key of its group: \
                    --group-key FILE\nor have the sender leave it open: fontana send --open";
        return Some((message, hint.to_owned()));
    }
    if rejected.total() == 0 || stats.datagrams > 0 {
        return None;
    }
    let message = format!(
        "no packet on {place} is of the group: {} dropped, {} without a tag, {} with a wrong one, \
         {} received before",
        Count(rejected.total(), "packet"),
        rejected.unsealed,
        rejected.forged,
        rejected.replayed,
    );
    let hint = match rejected.forged {
        0 => "have the sender use the group key (fontana send --group-key FILE), or leave it out",
        _ => {
            "copy the whole ticket again from the sender that sends now\nor compare the key files \
             (--group-key) of the sender and of this receiver"
        }
    };
    Some((message, hint.to_owned()))
}
