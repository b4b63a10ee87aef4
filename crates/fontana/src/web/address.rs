//! The addresses of a mirror's files.

use super::failure::MirrorFailure;
use fontana_wire::WebAddress;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use url::Url;

/// The address of one file on a web server, for servers that have no directories: a presigned URL
/// of an object store is good for one file.
///
/// It is a mirror of content if its path ends with a path of the manifest: that of a file,
/// `HASH.fontana`, or `fontana.head`. The addresses of files on one server are one mirror. The
/// query of the address may be a secret, and is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct MirrorFile {
    url: Url,
    /// The path, encoded as [`encode_path`] does it.
    path: String,
    /// The server, under whose name it is reported.
    server: WebAddress,
}

/// A text that is not the address of a file on a web server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a mirror is the address of a directory, http://HOST/DIRECTORY/ or https://HOST/DIRECTORY/, or \
     that of one file, without a name or password before the host"
)]
pub struct MirrorFileError;

impl MirrorFile {
    /// The server that has the file, as address of its uppermost directory.
    pub fn server(&self) -> &WebAddress {
        &self.server
    }

    /// Whether it is the file with this path of a manifest, encoded.
    fn has(&self, path: &str) -> bool {
        self.path.strip_suffix(path).is_some_and(|above| above.ends_with('/'))
    }
}

impl FromStr for MirrorFile {
    type Err = MirrorFileError;

    fn from_str(text: &str) -> Result<Self, MirrorFileError> {
        /// Longest address in characters: signatures of object stores have a thousand.
        const MAX_SIZE: usize = 8 << 10;
        let url = Url::parse(text).map_err(|_| MirrorFileError)?;
        let is_web = matches!(url.scheme(), "http" | "https");
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        let path = encode_path(&percent_decode_str(url.path()).collect::<Vec<u8>>());
        let server = format!("{}/", url.origin().ascii_serialization());
        let server = server.parse().map_err(|_| MirrorFileError)?;
        let is_valid = is_web && is_anonymous && !path.ends_with('/') && text.len() <= MAX_SIZE;
        if is_valid { Ok(Self { url, path, server }) } else { Err(MirrorFileError) }
    }
}

impl fmt::Debug for MirrorFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MirrorFile({}{})", self.server, self.path.trim_start_matches('/'))
    }
}

/// A mirror: a directory, or files with an address each.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Its name: the address of the directory, or of the server.
    pub(crate) address: WebAddress,
    /// The files, if not all of the directory.
    files: Option<Arc<[MirrorFile]>>,
    /// The senders of the ticket that names it, if its user has not chosen it.
    pub(crate) senders: Option<Arc<[IpAddr]>>,
}

impl Site {
    /// The mirrors of these directories and files.
    pub(crate) fn all(directories: &[WebAddress], files: &[MirrorFile]) -> Vec<Self> {
        let mut sites: Vec<Self> = directories.iter().map(Self::directory).collect();
        let mut servers: Vec<&WebAddress> = files.iter().map(MirrorFile::server).collect();
        servers.sort_unstable();
        servers.dedup();
        for server in servers {
            let own = files.iter().filter(|file| file.server == *server).cloned();
            sites.push(Self { files: Some(own.collect()), ..Self::directory(server) });
        }
        sites
    }

    /// The mirrors that a ticket of these senders names, and its user has not chosen.
    pub(crate) fn of_ticket(directories: &[WebAddress], senders: &[IpAddr]) -> Vec<Self> {
        let senders: Arc<[IpAddr]> = senders.into();
        let site =
            |address| Self { senders: Some(Arc::clone(&senders)), ..Self::directory(address) };
        directories.iter().map(site).collect()
    }

    fn directory(address: &WebAddress) -> Self {
        Self { address: address.clone(), files: None, senders: None }
    }

    /// The address of a file. `path` is [encoded](encode_path).
    ///
    /// # Errors
    /// It has no such file, or the mirror's address is no URL.
    pub(crate) fn url(&self, path: &str) -> Result<Url, MirrorFailure> {
        let Some(files) = &self.files else {
            let url = Url::parse(&format!("{}{path}", self.address));
            return url.map_err(|error| MirrorFailure::Connection(error.to_string()));
        };
        let file = files.iter().find(|file| file.has(path));
        let file = file.ok_or_else(|| MirrorFailure::NoAddress { path: path.to_owned() })?;
        Ok(file.url.clone())
    }
}

/// A path of a manifest as part of a URL: every byte that is not unreserved (RFC 3986, section 2.3)
/// is percent-encoded, so that no path leaves the directory or becomes a query.
pub(crate) fn encode_path(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for &byte in path {
        match byte {
            b'/' => text.push('/'),
            _ if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_directory() {
        assert_eq!(encode_path(b"a b/\xc3\xa9?#%.txt"), "a%20b/%C3%A9%3F%23%25.txt");
        let [site] = &Site::all(&["http://a.example/x/".parse().unwrap()], &[])[..] else {
            panic!("one mirror");
        };
        let url = site.url(&encode_path(b"p/q?.txt")).unwrap();
        assert_eq!(url.as_str(), "http://a.example/x/p/q%3F.txt");
    }

    #[test]
    fn files_with_addresses_of_their_own_are_found_by_the_end_of_their_paths() {
        let files = [
            "https://a.example/bucket/photos/a%20b.jpg?X-Amz-Signature=12",
            "https://a.example/bucket/0707.fontana?X-Amz-Signature=34",
            "https://b.example:444/image.raw",
        ];
        let files = files.map(|text| text.parse::<MirrorFile>().unwrap());
        let sites = Site::all(&["https://c.example/pub/".parse().unwrap()], &files);
        let names: Vec<_> = sites.iter().map(|site| site.address.as_str()).collect();
        assert_eq!(
            names,
            ["https://c.example/pub/", "https://a.example/", "https://b.example:444/"]
        );
        let url = |path: &[u8]| Some(sites[1].url(&encode_path(path)).ok()?.to_string());
        for path in [&b"photos/a b.jpg"[..], b"a b.jpg"] {
            assert_eq!(url(path).unwrap(), files[0].url.as_str());
        }
        assert_eq!(url(b"0707.fontana").unwrap(), files[1].url.as_str());
        for path in [&b" b.jpg"[..], b"a.jpg", b"image.raw"] {
            assert_eq!(url(path), None, "{path:?}");
        }
        assert!(!format!("{files:?}").contains("Signature"), "a secret");
    }

    #[test]
    fn an_address_of_no_file_is_refused() {
        for text in [
            "https://a.example/",
            "https://a.example/pub/",
            "ftp://a.example/x",
            "x",
            "https://user@a.example/x",
            "https://user:word@a.example/x",
        ] {
            assert_eq!(text.parse::<MirrorFile>(), Err(MirrorFileError), "{text}");
        }
    }
}
