//! The keys of sessions that no person has made a key for.

use super::key::GroupKey;
use super::line::{KeyFileError, parse, text};
use crate::error::Error;
use fontana_wire::{Hash, SecretKey, TicketSecret};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;
use zeroize::Zeroizing;

const HOST_PREFIX: &str = "fontana-host-key-1 ";
const CONTENT_PREFIX: &str = "fontana-content-key-1 ";

/// What a derived key is for (RFC 5869, section 3.2).
const OF_CONTENT: &[u8] = b"fontana content 1";
const OF_FOLDER: &[u8] = b"fontana folder signer 1";
const SIGNER: &[u8] = b"fontana content signer 1";
const SECRET: &[u8] = b"fontana content secret 1";
const OF_PUBLISHER: &[u8] = b"fontana publisher secret 1";
const GROUP: &[u8] = b"fontana ticket 1";

/// The secret of a host from which the keys of its sessions follow: the same content has the same
/// ticket whenever it is sent from there.
///
/// Its file has one line: `fontana-host-key-1`, a space, and 32 bytes as 64 hexadecimal digits.
#[derive(Clone)]
pub struct HostKey(Zeroizing<[u8; Self::SIZE]>);

impl HostKey {
    /// Size of the key in bytes.
    pub const SIZE: usize = 32;

    /// The key with these bytes, which must be random.
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A new key, from the system's random numbers.
    ///
    /// # Errors
    /// [`IoError::System`](crate::IoError::System) if the system has none.
    pub fn generate() -> Result<Self, Error> {
        crate::system::random_bytes().map(Self::from_bytes)
    }

    /// The key of the sessions that send the content with this manifest.
    pub fn content(&self, manifest: &Hash) -> ContentKey {
        ContentKey(derive(&self.0[..], &manifest.0, OF_CONTENT))
    }

    /// The key that signs the versions of what these absolute paths name.
    pub fn folder_signer<'p>(&self, paths: impl IntoIterator<Item = &'p Path>) -> SecretKey {
        let ended = |path: &'p Path| path.as_os_str().as_bytes().iter().chain(&[0]).copied();
        let names: Vec<u8> = paths.into_iter().flat_map(ended).collect();
        SecretKey::from_seed(&derive(&self.0[..], &names, OF_FOLDER))
    }

    /// Content of a key file, newline included. It is the secret itself.
    pub fn to_file_text(&self) -> String {
        text(HOST_PREFIX, &self.0)
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostKey(..)")
    }
}

/// Parses the content of a key file; white space around the line is ignored.
impl FromStr for HostKey {
    type Err = KeyFileError;

    fn from_str(line: &str) -> Result<Self, KeyFileError> {
        parse(HOST_PREFIX, line).map(Self)
    }
}

/// The key of the sessions that send one content: what signs their heads, and what seals their
/// packets. All senders of one ticket have it.
///
/// Its file has one line: `fontana-content-key-1`, a space, and 32 bytes as 64 hexadecimal digits.
#[derive(Clone)]
pub struct ContentKey(Zeroizing<[u8; Self::SIZE]>);

impl ContentKey {
    /// Size of the key in bytes.
    pub const SIZE: usize = 32;

    /// The key with these bytes, which must be random.
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A new key, from the system's random numbers: for content that is not known before it is
    /// sent.
    ///
    /// # Errors
    /// [`IoError::System`](crate::IoError::System) if the system has none.
    pub fn generate() -> Result<Self, Error> {
        crate::system::random_bytes().map(Self::from_bytes)
    }

    /// The key that signs.
    pub fn signer(&self) -> SecretKey {
        SecretKey::from_seed(&derive(&self.0[..], &[], SIGNER))
    }

    /// The secret of the ticket.
    pub fn secret(&self) -> TicketSecret {
        TicketSecret::from_bytes(*derive(&self.0[..], &[], SECRET))
    }

    /// Content of a key file, newline included. It is the secret itself.
    pub fn to_file_text(&self) -> String {
        text(CONTENT_PREFIX, &self.0)
    }
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentKey(..)")
    }
}

/// Parses the content of a key file; white space around the line is ignored.
impl FromStr for ContentKey {
    type Err = KeyFileError;

    fn from_str(line: &str) -> Result<Self, KeyFileError> {
        parse(CONTENT_PREFIX, line).map(Self)
    }
}

/// Where the keys of a session come from.
#[derive(Clone, Debug)]
pub enum ContentKeys {
    /// They follow from the host's key and the content, but for contents whose keys were drawn, by
    /// the hashes of their manifests.
    OfHost(HostKey, BTreeMap<Hash, ContentKey>),
    /// These.
    Given(ContentKey),
}

impl ContentKeys {
    /// The key of the sessions that send the content with this manifest.
    pub fn content(&self, manifest: &Hash) -> ContentKey {
        match self {
            Self::OfHost(host, drawn) => {
                drawn.get(manifest).cloned().unwrap_or_else(|| host.content(manifest))
            }
            Self::Given(key) => key.clone(),
        }
    }
}

/// The secret of the tickets of a publisher's sessions: it follows from the key that signs, and is
/// the same for all versions.
pub(crate) fn secret_of_publisher(signer: &SecretKey) -> TicketSecret {
    TicketSecret::from_bytes(*derive(signer.seed(), &[], OF_PUBLISHER))
}

impl GroupKey {
    /// The key of all who have a ticket with this secret.
    pub fn of_ticket(secret: &TicketSecret) -> Self {
        Self(derive(&secret.to_bytes(), &[], GROUP))
    }
}

/// HKDF-SHA256 (RFC 5869).
fn derive<const N: usize>(secret: &[u8], salt: &[u8], info: &[u8]) -> Zeroizing<[u8; N]> {
    struct Length(usize);

    impl KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }

    let mut derived = Zeroizing::new([0; N]);
    let pseudorandom = Salt::new(HKDF_SHA256, salt).extract(secret);
    let info = [info];
    match pseudorandom.expand(&info, Length(N)).map(|key| key.fill(&mut derived[..])) {
        Ok(Ok(())) => derived,
        _ => unreachable!("HKDF-SHA256 expands to {N} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(from: u8) -> [u8; N] {
        std::array::from_fn(|i| from + i as u8)
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The value with this name in the page's section of keys. They were computed with the Python
    /// package `cryptography`.
    fn of_page(name: &str) -> &'static str {
        const PAGE: &str = include_str!("../../../../docs/wire.md");
        let (_, section) = PAGE.split_once("\n## 20. Keys of tickets\n").unwrap();
        let mut rows =
            section.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": `"));
        rows.find(|(row, _)| *row == name).unwrap().1.trim_end_matches('`')
    }

    #[test]
    fn the_pages_keys_are_derived() {
        let host = HostKey::from_bytes(bytes(0x00));
        let content = host.content(&Hash(bytes(0x40)));
        assert_eq!(hex(&content.0[..]), of_page("content key"));
        assert_eq!(hex(content.signer().seed()), of_page("seed of the signer"));
        assert_eq!(hex(&content.secret().to_bytes()), of_page("secret"));
        let folder = host.folder_signer([Path::new("/srv/photos"), Path::new("/etc/motd")]);
        assert_eq!(hex(folder.seed()), of_page("seed of the signer of a folder"));
        let publisher = SecretKey::from_seed(&bytes(0x80));
        let secret = secret_of_publisher(&publisher);
        assert_eq!(hex(&secret.to_bytes()), of_page("secret of a publisher"));
        let group = GroupKey::of_ticket(&TicketSecret::from_bytes(bytes(0x10)));
        assert_eq!(hex(group.bytes()), of_page("group key"));
    }

    #[test]
    fn files_are_read_as_they_were_written_and_not_for_each_other() {
        let (host, content) = (HostKey::from_bytes(bytes(7)), ContentKey::from_bytes(bytes(9)));
        let (host_text, content_text) = (host.to_file_text(), content.to_file_text());
        assert_eq!(host_text.parse::<HostKey>().unwrap().0, host.0);
        assert_eq!(content_text.parse::<ContentKey>().unwrap().0, content.0);
        assert_eq!(content_text.parse::<HostKey>().unwrap_err(), KeyFileError::Prefix(HOST_PREFIX));
        assert!(host_text.parse::<GroupKey>().is_err());
        assert_eq!(format!("{host:?} {content:?}"), "HostKey(..) ContentKey(..)");
    }

    #[test]
    fn another_content_or_another_host_has_other_keys() {
        let key = |host: u8, manifest: u8| {
            HostKey::from_bytes([host; 32]).content(&Hash([manifest; 32])).secret()
        };
        assert_eq!(key(1, 1), key(1, 1));
        assert_ne!(key(1, 1), key(2, 1));
        assert_ne!(key(1, 1), key(1, 2));
    }

    #[test]
    fn a_key_that_was_drawn_is_that_of_its_content_alone() {
        let (host, drawn) = (HostKey::from_bytes([1; 32]), ContentKey::from_bytes([2; 32]));
        let secret = |key: ContentKey| key.secret();
        let keys = ContentKeys::OfHost(host.clone(), [(Hash([1; 32]), drawn.clone())].into());
        assert_eq!(secret(keys.content(&Hash([1; 32]))), secret(drawn));
        assert_eq!(secret(keys.content(&Hash([2; 32]))), secret(host.content(&Hash([2; 32]))));
    }
}
