//! What the sender of a plain FLUTE or FCAST session tells its user.

use crate::args::{Fec, SendArguments};
use fontana::wire::{FileEntry, FluteVersion, Tsi};
use fontana::{SessionDescription, Undescribed};
use fontana_console::console::Console;
use fontana_console::units::Count;

/// Bytes of a file that all programs read which were tried: the cache of the crate `flute`.
const READ_BY_ALL: u64 = 10 << 20;

/// Tells what other programs make of a session, before it begins.
pub(super) fn tell(session: &SessionDescription, arguments: &SendArguments, console: &Console) {
    if session.ticket.tsi == Tsi(0) {
        console.warning(
            "0 is no session number of ALC (RFC 5775, section 2.1)",
            "receivers that follow it drop the packets; unless yours expect 0, choose another \
             number: --to GROUP:PORT/N",
        );
    }
    if let Some(what) = left_out(session.undescribed) {
        console.warning(&what, "FLUTE and FCAST describe files; send an archive to keep the rest");
    }
    if arguments.flute.map(|flute| flute.version) != Some(FluteVersion::V1)
        || arguments.fec() != Fec::None
    {
        return;
    }
    let longest = session.manifest.files().map(FileEntry::length).max();
    let of_long_files = match longest.is_some_and(|length| length > READ_BY_ALL) {
        true => {
            "; of files beyond 10 MiB, GPAC reads those of one block (--block-symbols 65535), and \
             the crate flute those that fit its cache"
        }
        false => "",
    };
    console.say(format_args!(
        "FLUTE version 1 without a code, which most programs read{of_long_files}; a path that \
         loses packets takes several passes (a code: --fec)"
    ));
}

/// `2 links and 1 empty directory are left out`; `None` if nothing is.
fn left_out(Undescribed { links, empty_directories }: Undescribed) -> Option<String> {
    let links = (links > 0).then(|| Count(links, "link").to_string());
    let directories = match empty_directories {
        0 => None,
        1 => Some("1 empty directory".to_owned()),
        number => Some(format!("{number} empty directories")),
    };
    let kinds: Vec<_> = links.into_iter().chain(directories).collect();
    (!kinds.is_empty()).then(|| format!("left out: {}", kinds.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let said = |links, empty_directories| left_out(Undescribed { links, empty_directories });
        assert_eq!(said(0, 0), None);
        assert_eq!(said(1, 0).unwrap(), "left out: 1 link");
        assert_eq!(said(2, 1).unwrap(), "left out: 2 links and 1 empty directory");
        assert_eq!(said(0, 3).unwrap(), "left out: 3 empty directories");
    }
}
