//! The keys of a session whose options name none. They follow from a key of this host, so that the
//! same content has the same ticket after a restart.

use crate::args::{SendArguments, SessionFormat};
use crate::key_file;
use crate::version_file::VersionFile;
use fontana::seal::{ContentKey, ContentKeys, HostKey};
use fontana::wire::{Hash, SecretKey};
use fontana::{NewFile, Outcome, SessionDescription};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The name of the file with the host's key.
const HOST_KEY: &str = "host.key";
/// The directory with the keys of contents that are not those that follow from the host's.
const TICKETS: &str = "tickets";
/// What is to be done with a key of the host that is damaged.
const BEGIN_ANEW: &str = "remove it: another is drawn, and tickets change";
/// The same, of the key beside a manifest.
const COPY_AGAIN: &str = "copy it again from the first sender";

/// Whether packets are sealed by the secret of the ticket.
pub(super) fn are_of_ticket(arguments: &SendArguments) -> bool {
    arguments.format() == SessionFormat::Fontana
        && !arguments.open
        && arguments.group_key.is_none()
        && arguments.certificate.is_none()
}

/// The keys of a session of files, if options leave them to the ticket. `manifest`: it goes on with
/// one. `asks`: it asks for reports, so that a group whose key seals it needs one that signs.
pub(super) fn of_files(
    arguments: &SendArguments,
    manifest: bool,
    asks: bool,
    console: &Console,
) -> Result<Option<ContentKeys>, Failure> {
    let signs_for_group = asks && arguments.group_key.is_some() && arguments.sign.is_none();
    if !are_of_ticket(arguments) && !signs_for_group {
        return Ok(None);
    }
    key_file::keep_secrets();
    let beside = arguments.manifest.as_deref().map(beside).filter(|path| manifest && path.exists());
    if let (Some(path), true) = (&beside, arguments.new_ticket) {
        let message = format!("--new-ticket, and the manifest has its key in {path:?}");
        let hint = "remove the manifest and its key, and copy the new ones to the other senders";
        return Err(Failure::new(Outcome::Usage, message, hint));
    }
    if let (Some(path), None) = (&beside, &arguments.sign) {
        return key_file::read(path, COPY_AGAIN).map(ContentKeys::Given).map(Some);
    }
    if let (true, Some(path), None) = (manifest, &arguments.manifest, &arguments.sign) {
        console.warning(
            &format!(
                "the manifest {path:?} is there, and its key is not: the ticket is this host's"
            ),
            "receivers that have the ticket of another sender cannot use this one: copy its key, \
             which is beside its manifest (FILE.key)",
        );
    }
    if arguments.new_ticket {
        return Ok(Some(ContentKeys::Given(ContentKey::generate()?)));
    }
    let host = of_host(console)?;
    Ok(Some(ContentKeys::OfHost(host.key, host.drawn)))
}

/// Keeps the key that was drawn for content, so that its ticket stays the new one.
pub(super) fn keep_drawn(
    arguments: &SendArguments,
    keys: Option<&ContentKeys>,
    session: &SessionDescription,
) -> Result<(), Failure> {
    match (keys, &session.manifest_hash) {
        (Some(ContentKeys::Given(key)), Some(hash)) if arguments.new_ticket => {
            keep_in_tickets(&hash.to_string(), key)
        }
        _ => Ok(()),
    }
}

/// The file of a key that was drawn, in the directory of this host's state. `name`: the hash of a
/// manifest; of a directory that is followed the public key that it had first.
fn in_tickets(name: &str) -> Option<PathBuf> {
    Some(directory()?.join(TICKETS).join(format!("{name}.key")))
}

fn keep_in_tickets(name: &str, key: &ContentKey) -> Result<(), Failure> {
    let Some(path) = in_tickets(name) else { return Ok(()) };
    let text = key.to_file_text();
    let written = std::fs::create_dir_all(path.parent().unwrap_or(&path))
        .and_then(|()| new_secret(&path, &text)?.replace(&path));
    written.map_err(|error| {
        let message = format!("cannot keep the new ticket's key {path:?}: {error}");
        Failure::new(Outcome::Refused, message, "nothing was sent, and the ticket is the old one")
    })
}

/// The keys that were drawn for contents, by the hashes of their manifests.
fn drawn_keys() -> Result<BTreeMap<Hash, ContentKey>, Failure> {
    let listed = directory().map(|directory| std::fs::read_dir(directory.join(TICKETS)));
    let mut keys = BTreeMap::new();
    for path in listed.into_iter().flatten().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if let Ok(hash) = name.parse() {
            keys.insert(hash, key_file::read(&path, BEGIN_ANEW)?);
        }
    }
    Ok(keys)
}

/// Writes the key of new content beside where its manifest will be, for other senders of the same
/// ticket. A session that a publisher has signed needs none: they have the publisher's key.
pub(super) fn write_beside_manifest(
    arguments: &SendArguments,
    keys: Option<&ContentKeys>,
    session: &SessionDescription,
) -> Result<(), Failure> {
    let (Some(path), Some(keys), None) = (&arguments.manifest, keys, &arguments.sign) else {
        return Ok(());
    };
    let Some(hash) = &session.manifest_hash else { return Ok(()) };
    let path = beside(path);
    let text = keys.content(hash).to_file_text();
    let written = match write_secret(&path, &text) {
        // Of an earlier manifest of this name; any other file is the user's.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            key_file::read::<ContentKey>(
                &path,
                "rename it, or choose another name for --manifest",
            )?;
            new_secret(&path, &text).and_then(|file| file.replace(&path))
        }
        written => written,
    };
    written.map_err(|error| {
        let message = format!("cannot write the manifest's key {path:?}: {error}");
        Failure::new(Outcome::Refused, message, "choose a directory that this user may write to")
    })
}

/// The key of a stream, of which nothing is known before it is sent.
pub(super) fn of_stream(arguments: &SendArguments) -> Result<Option<ContentKey>, Failure> {
    key_file::keep_secrets();
    Ok(are_of_ticket(arguments).then(ContentKey::generate).transpose()?)
}

/// The key that signs the versions of what is followed, if options name none, and where it keeps
/// the highest of them. `keys`: those of the packets, which have the host's key already.
pub(super) fn of_folder(
    arguments: &SendArguments,
    files: &[PathBuf],
    keys: Option<&ContentKeys>,
    console: &Console,
) -> Result<(SecretKey, Option<VersionFile>), Failure> {
    key_file::keep_secrets();
    let mut paths = Vec::<PathBuf>::new();
    for path in files {
        let absolute = std::path::absolute(path).map_err(|error| {
            Failure::new(Outcome::Io, format!("{path:?} has no absolute path: {error}"), "")
        })?;
        // Without a slash at the end, which shells add.
        paths.push(absolute.components().collect());
    }
    let host = match keys {
        Some(ContentKeys::OfHost(host, _)) => host.clone(),
        _ => of_host(console)?.key,
    };
    let mut signer = host.folder_signer(paths.iter().map(PathBuf::as_path));
    let name = format!("folder-{}", signer.public_key());
    match (keys, in_tickets(&name).filter(|path| path.exists())) {
        (Some(ContentKeys::Given(new)), _) => {
            if !arguments.dry_run {
                keep_in_tickets(&name, new)?;
            }
            signer = new.signer();
        }
        (_, Some(path)) => signer = key_file::read::<ContentKey>(&path, BEGIN_ANEW)?.signer(),
        _ => {}
    }
    let key = directory().map(|directory| directory.join(HOST_KEY)).filter(|key| key.exists());
    Ok((signer, key.as_deref().map(VersionFile::beside)))
}

/// The file of the key beside a manifest.
fn beside(manifest: &Path) -> PathBuf {
    let mut path = OsString::from(manifest);
    path.push(".key");
    path.into()
}

/// From what the keys of this host's sessions follow.
struct Host {
    key: HostKey,
    /// Keys that were drawn for contents, by the hashes of their manifests.
    drawn: BTreeMap<Hash, ContentKey>,
}

/// The key of this host, which is drawn once. Where it cannot be kept, that is said.
fn of_host(console: &Console) -> Result<Host, Failure> {
    let kept = match directory() {
        Some(directory) => kept_in(&directory),
        None => Ok(Err("there is no home directory".to_owned())),
    };
    match kept? {
        Ok(key) => Ok(Host { key, drawn: drawn_keys()? }),
        Err(why) => {
            console.warning(
                &format!("this host's key cannot be kept ({why})"),
                "the ticket is another one at every start: give it a state directory, or --sign",
            );
            Ok(Host { key: HostKey::generate()?, drawn: BTreeMap::new() })
        }
    }
}

/// The key in this directory, which may be new; or why it cannot be kept there.
fn kept_in(directory: &Path) -> Result<Result<HostKey, String>, Failure> {
    let path = directory.join(HOST_KEY);
    if !path.exists() {
        let new = HostKey::generate()?.to_file_text();
        let written = std::fs::create_dir_all(directory).and_then(|()| write_secret(&path, &new));
        if let Err(error) = written
            && !path.exists()
        {
            return Ok(Err(format!("{path:?}: {error}")));
        }
    }
    if let Err(error) = std::fs::File::open(&path)
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        return Ok(Err(format!("{path:?}: {error}")));
    }
    // Another process may have written it first.
    key_file::read(&path, BEGIN_ANEW).map(Ok)
}

/// Where this host keeps its state: a service of systemd, a user, or root.
fn directory() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let is_whole = |path: &PathBuf| path.is_absolute();
    if let Some(of_service) = variable("STATE_DIRECTORY").filter(is_whole) {
        return Some(of_service);
    }
    if let Some(of_user) = variable("XDG_STATE_HOME").filter(is_whole) {
        return Some(of_user.join("fontana"));
    }
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/fontana"));
    }
    Some(variable("HOME").filter(is_whole)?.join(".local/state/fontana"))
}

/// Writes a file that only its owner may read. An existing one is not replaced.
fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    new_secret(path, text)?.keep_as(path)
}

/// A file for this path that only its owner may read, and that has no name yet.
fn new_secret(path: &Path, text: &str) -> io::Result<NewFile> {
    let mut file = NewFile::create_secret_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana::wire::Hash;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_of_a_host_is_drawn_once_and_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state/fontana");
        let secret = |key: HostKey| key.content(&Hash([1; 32])).secret();
        let first = secret(kept_in(&state).unwrap().unwrap());
        assert_eq!(secret(kept_in(&state).unwrap().unwrap()), first);
        let path = state.join(HOST_KEY);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(kept_in(&state).unwrap_err().outcome, Outcome::Authentication);
        fs::write(&path, "no key").unwrap();
        assert_eq!(kept_in(&state).unwrap_err().outcome, Outcome::Authentication);
        fs::write(directory.path().join("file"), "").unwrap();
        assert!(kept_in(&directory.path().join("file/below")).unwrap().is_err());
    }
}
