//! What the mirrors of a receiver have.

use super::PreparedReceiver;
use crate::receive::mirrors::PreparedMirrors;
use crate::system;
use crate::web::discovery::{Discovery, Published, PublishedError};

/// Mirrors of a receiver without a ticket. With the feature `web`.
impl PreparedReceiver {
    /// Asks the mirrors what they have, for a receiver without a ticket: each is asked for its head
    /// ([`MirrorHead`](crate::MirrorHead)), and then for the manifest. If a publisher is expected,
    /// only what it has signed counts, and the newest version of it. Otherwise all mirrors that
    /// answer must have the same.
    ///
    /// # Errors
    /// [`PublishedError`].
    pub fn find_published(&self) -> Result<Published, PublishedError> {
        let options = &self.reception.options;
        let Some(PreparedMirrors { sites, access }) = &self.reception.mirrors else {
            return Err(PublishedError::Nothing(Vec::new()));
        };
        let discovery = Discovery {
            sites,
            access,
            expectation: &options.expectation,
            now_unix_seconds: system::unix_ms() / 1_000,
            limits: options.limits().manifest,
            token: &self.token,
        };
        discovery.run()
    }

    /// Receives this content, and nothing else.
    pub fn expect(&mut self, published: &Published) {
        self.reception.options.expectation.manifest = Some(published.hash);
    }
}
