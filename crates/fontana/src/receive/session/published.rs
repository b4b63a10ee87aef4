//! What the mirrors of a receiver have.

use super::PreparedReceiver;
use crate::receive::mirrors::PreparedMirrors;
use crate::system;
use crate::web::discovery::{Discovery, Published, PublishedError};
use crate::web::failure::MirrorFailure;
use fontana_wire::WebAddress;
use std::time::Duration;

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
        self.find_published_with(&|_, _, _| ())
    }

    /// The same. `on_failure` is told of each failure of a mirror that may pass, and the time until
    /// the mirror is asked again. That ends with the [timeout](crate::ReceiverBuilder::timeout),
    /// the time of [silence](crate::ReceiverBuilder::give_up_after_silence), or a cancellation.
    ///
    /// # Errors
    /// [`PublishedError`].
    pub fn find_published_with(
        &self,
        on_failure: &dyn Fn(&WebAddress, &MirrorFailure, Duration),
    ) -> Result<Published, PublishedError> {
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
            time: options.timeout.into_iter().chain(options.give_up_after_silence).min(),
            on_failure,
        };
        discovery.run()
    }

    /// Receives this content, and nothing else. The time that it took to find it counts for the
    /// timeout.
    pub fn expect(&mut self, published: &Published) {
        let options = &mut self.reception.options;
        options.expectation.manifest = Some(published.hash);
        options.timeout = options.timeout.map(|time| time.saturating_sub(published.took));
    }
}
