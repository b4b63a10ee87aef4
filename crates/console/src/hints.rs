//! Hints for the library's errors: one entry for each kind.

use fontana::ErrorKind;

/// The hint for errors of this kind, with the options of this program; empty if the error's message
/// is sufficient.
pub fn hint(kind: ErrorKind) -> &'static str {
    HINTS.iter().find(|(other, _)| *other == kind).map_or("", |(_, hint)| hint)
}

const DEFECT: &str = "this is a defect of the program: please report it";
/// The hint for a panic, in whichever thread.
pub const PANIC: &str = "this is a defect of the program: please report it, with what it \
                                printed; what was received is saved, and the same command resumes";
const DOCTOR: &str = "see what this host can do: fontana doctor";

/// A hint of several lines has line breaks.
const HINTS: &[(ErrorKind, &str)] = &[
    (ErrorKind::Pattern, "patterns are those of .gitignore: *.jpg, /cache/, docs/**"),
    (ErrorKind::Nameless, "name the directories in it"),
    (ErrorKind::Address, ""),
    (ErrorKind::Membership, DOCTOR),
    (ErrorKind::Interface, ""),
    (ErrorKind::Mtu, ""),
    (
        ErrorKind::FileName,
        "of a path that is too long or too deep, send a directory further down; otherwise rename it",
    ),
    (ErrorKind::StreamName, "ask the sender to send it in another way"),
    (ErrorKind::SameName, "rename one of them, or send them in two sessions"),
    (
        ErrorKind::ManifestDiffers,
        "send what the manifest was made of, or begin anew: with the name of a new manifest",
    ),
    (
        ErrorKind::CodeOfOurOwn,
        "leave out --flute or --fcast, or send with --fec raptorq, raptor, rs or none",
    ),
    (ErrorKind::Congestion, "change the layers, or the rate"),
    (ErrorKind::LayerTooSlow, "have fewer layers (--layers), or a higher --rate"),
    (ErrorKind::LayerTooFast, "have more channels, or a lower --rate"),
    (ErrorKind::LayersTooFast, "raise --rate"),
    (ErrorKind::LayerCount, "name one for each channel (--layers N, or the groups of --to)"),
    (ErrorKind::WavesWithRates, "leave out --layers, or choose another scheme: --layered=rlc"),
    (
        ErrorKind::GroupCount,
        "name one group, and those after it are taken; or change --layers or --rate",
    ),
    (ErrorKind::OneChannelOnly, "leave out --layers, and name one group"),
    (ErrorKind::ChannelsWithoutGroups, "send to a multicast group, or over one channel"),
    (ErrorKind::InterfacesWithoutGroup, "give one -i, or receive from a multicast group"),
    (ErrorKind::ChannelsBeyondGroups, "begin at a lower group, or list all of them"),
    (
        ErrorKind::UncontrolledNetwork,
        "let receivers yield to other traffic: --layered; or, if all networks on \
         the way are yours and have room for the rate, say so: --controlled-network",
    ),
    (ErrorKind::NothingToSend, "name at least one file"),
    (
        ErrorKind::Mark,
        "if you trust what is being sent, remove the file: then any version is taken once",
    ),
    (
        ErrorKind::NoPublisher,
        "have the sender sign (fontana keygen KEYFILE; fontana send --sign KEYFILE) and use the \
         ticket that it prints, or give the publisher's key: --key",
    ),
    (ErrorKind::NoSigner, "make one, and sign with it: fontana keygen KEYFILE; --sign KEYFILE"),
    (
        ErrorKind::UnsignedDigests,
        "make one, and sign with it: fontana keygen KEYFILE; --sign KEYFILE",
    ),
    (
        ErrorKind::OtherCertificate,
        "get one from the publisher for this manifest and this key: fontana certify",
    ),
    (ErrorKind::SealedCertificate, "leave out --group-key, or sign with the publisher's key"),
    (ErrorKind::Range, ""),
    (
        ErrorKind::Schedule,
        "leave out --order, or: --fec rs for cumulative, or --fec tornado without short files; \
         org_1, --layers N for segments; --memory SIZE for more content",
    ),
    (ErrorKind::NoFurtherFiles, "send them in another session"),
    (ErrorKind::GrowingPush, "send until interrupted, or all files at once"),
    (ErrorKind::Reports, "docs/reports.md has the conditions of reports"),
    (ErrorKind::RepairOnDemand, "docs/reports.md has the conditions of repair on demand"),
    (
        ErrorKind::RateFollowing,
        "docs/reports.md has the conditions of a rate that follows receivers",
    ),
    (ErrorKind::TooMuch, "send fewer files in one session"),
    (ErrorKind::SourceMissing, "check the spelling of the path"),
    (ErrorKind::SourceDenied, "run as a user that may read it, or change its permissions"),
    (ErrorKind::SourceRefused, "check the disk that the file is on (dmesg), then send again"),
    (ErrorKind::SourceDisk, "check the disk that the file is on (dmesg), then send again"),
    (
        ErrorKind::SourceNotRegular,
        "only files, directories, symbolic links and block devices (by name) can be sent: exclude \
         it, or send a copy of its contents",
    ),
    (ErrorKind::SourceChanged, "send a copy or a snapshot that no program writes to"),
    (ErrorKind::TargetRefused, "choose a directory that this user may write to"),
    (ErrorKind::TargetDisk, "check the disk (dmesg), then receive again"),
    (
        ErrorKind::DiskFull,
        "free some space, or choose a place on another disk, then receive again; files that have \
         their names are complete, and of others the same command goes on with what was received",
    ),
    (
        ErrorKind::DeviceFull,
        "free some space, or name a file on another disk, then receive again; if the file exists \
         now, the same command and --existing replace go on with what was received",
    ),
    (ErrorKind::TargetExists, "choose another directory, or allow replacing: --existing replace"),
    (ErrorKind::TargetIsDirectory, "choose another directory"),
    (ErrorKind::TargetBlocked, "remove it, or choose another directory"),
    (ErrorKind::TargetBusy, "wait for the other receiver, or choose another directory"),
    (
        ErrorKind::DeviceInUse,
        "unmount it, or to send it mount it read-only; see what uses it: lsblk, fuser -m",
    ),
    (ErrorKind::NotADevice, "name a device or a file; a directory: -o DIR"),
    (ErrorKind::NameCaseClash, "choose a directory on a file system that tells letter case apart"),
    (ErrorKind::NameRefused, "ask the sender for a name that this system can take"),
    (ErrorKind::Geometry, DEFECT),
    (ErrorKind::Network, DOCTOR),
    (
        ErrorKind::NothingSent,
        "see what forbids it (nft list ruleset; ip route; ip link), and what \
                              this host can do: fontana doctor",
    ),
    (
        ErrorKind::NoNeighbor,
        "where no answer can come back, add the address on this host: \
         ip neigh replace ADDRESS lladdr MAC dev INTERFACE nud permanent",
    ),
    (ErrorKind::Consumer, ""),
    (ErrorKind::Producer, ""),
    (ErrorKind::ReadBack, "the device is broken, or somebody else writes to it: use another one"),
    (
        ErrorKind::Thread,
        "raise the limit on threads (ulimit -u, or pids.max of the container), or on memory",
    ),
    (ErrorKind::System, ""),
    (ErrorKind::NothingSelected, "see all names: fontana recv --list"),
    (ErrorKind::Content, "the sender's data is inconsistent: ask who runs it, or receive again"),
    (
        ErrorKind::Unsupported,
        "ask the sender to send it in another way; if it asks for too much: --memory, --max-size",
    ),
    (ErrorKind::MissingSlices, "receive longer, or ask the sender for all slices"),
    (ErrorKind::ReceiversAbsent, "check that they run and reach this host, or wait longer: --for"),
    (ErrorKind::NotOneFile, "receive into a directory, or with --flute choose one: --only"),
    (ErrorKind::TooSmall, "use a larger device; nothing was written beyond its end"),
    (
        ErrorKind::StreamLate,
        "start receivers before the stream begins (send --wait), or have the sender read it first \
         (send --spool): then receivers may come at any time",
    ),
    (
        ErrorKind::StreamLost,
        "have the sender send more repair symbols (--push) or fewer packets a second (--rate), or \
         read the stream first (--spool)",
    ),
    (
        ErrorKind::StreamBehind,
        "let more of it wait on the disk, twice as much as --memory, or receive it into a directory",
    ),
    (ErrorKind::StreamTooLarge, "if you trust the sender, accept more: --max-size"),
    (ErrorKind::StreamFailed, "somebody forges packets, or a machine is broken"),
    (ErrorKind::StreamBySender, "see what the sender says"),
    (ErrorKind::Panic, PANIC),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    /// Errors whose messages name what is allowed, what exists, or what the system answered.
    const MESSAGE_SAYS_IT: [ErrorKind; 7] = [
        ErrorKind::Address,
        ErrorKind::Interface,
        ErrorKind::Mtu,
        ErrorKind::Range,
        ErrorKind::Consumer,
        ErrorKind::Producer,
        ErrorKind::System,
    ];

    #[test]
    fn every_kind_of_error_has_one_hint() {
        let listed: Vec<_> = HINTS.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(listed, ErrorKind::ALL);
        for &kind in ErrorKind::ALL {
            assert_eq!(hint(kind).is_empty(), MESSAGE_SAYS_IT.contains(&kind), "{kind:?}");
        }
    }

    /// The source files below a directory.
    fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                into.push(path);
            }
        }
    }

    #[test]
    fn no_library_names_an_option_of_this_program() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut files = Vec::new();
        for library in ["fec", "wire", "proto", "net", "store", "fontana"] {
            sources(&crates.join(library).join("src"), &mut files);
        }
        assert!(files.len() > 100);
        for path in files {
            let text = std::fs::read_to_string(&path).unwrap();
            // Tests and comments contain no messages.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let is_option = |rest: &str| rest.starts_with(|c: char| c.is_ascii_lowercase());
                let named = line.contains('"') && line.split("--").skip(1).any(is_option);
                assert!(!named, "{}: {line}", path.display());
            }
        }
    }
}
