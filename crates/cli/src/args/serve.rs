//! The arguments of `fontana serve`.

use super::{HeadSigning, MemoryArgument};
use clap::{Args, ValueHint};
use fontana::WebServer;
use fontana::wire::WebAddress;
use fontana_console::talk::Talk;
use fontana_console::units::parse_size;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Serve files over HTTP, and fresh symbols of them to receivers that lack some
///
/// Reads and hashes the files, and prints a ticket. Each receiver gets symbols that it has not got
/// from any other source; what one symbol costs to compute is shared by all receivers that take it.
/// Other programs get the files, and ranges of them. Anyone who reaches the address can read the
/// files: by default that is this host.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana serve image.raw                       for receivers on this host
  fontana serve image.raw --listen 192.0.2.1:7780
  fontana serve image.raw --listen 0.0.0.0:80 --web http://a.example/
  fontana serve image.raw --manifest image.manifest    what fontana send --manifest sends
  fontana recv 'fontana://web/?manifest=...&web=http://192.0.2.1:7780/'
  fontana recv 'fontana://239.255.77.1:7701/5?manifest=...' http://192.0.2.1:7780/")]
pub(crate) struct ServeArguments {
    /// Files and directories
    #[arg(required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,
    /// Listen at this address; port 0: any free one
    #[arg(long, value_name = "ADDR:PORT", default_value_t = WebServer::DEFAULT_ADDRESS)]
    pub(crate) listen: SocketAddr,
    /// Name this address in the ticket instead: http:// or https://, for proxies and host names
    #[arg(long, value_name = "URL")]
    pub(crate) web: Vec<WebAddress>,
    /// Serve the content of this manifest, which a sender has written: fontana send --manifest
    ///
    /// Receivers of the session then take what they lack from this server.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) manifest: Option<PathBuf>,
    /// Verify blocks of about this many bytes: 256K, 14M
    ///
    /// A file has at most 255 blocks.
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = parse_size)]
    pub(crate) block_size: u64,
    /// Give the content this version
    ///
    /// Raise it when newer content replaces it, so that receivers that know the key of --sign can
    /// tell which is newer.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) content_version: u64,
    #[command(flatten)]
    pub(crate) signing: HeadSigning,
    #[command(flatten)]
    pub(crate) memory: MemoryArgument,
    #[command(flatten)]
    pub(crate) talk: Talk,
}
