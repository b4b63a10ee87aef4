//! Interfaces that vanish while a reception runs. Its groups are joined again when they are back.

use super::DecidingThread;
use crate::error::Error;
use crate::event::ReceiveEvent;
use fontana_net::presence::{Found, index_now};
use fontana_net::{Interface, InterfaceChange, ReceiveConfig};
use std::collections::BTreeSet;

impl DecidingThread<'_, '_> {
    /// Joins again what was joined on interfaces that are back, and tells of those that are gone.
    pub(super) fn watch_interfaces(&mut self) {
        let elapsed = self.elapsed();
        for found in self.presence.poll(elapsed, index_now) {
            let change = match found {
                Found::Gone(interface) => InterfaceChange::Gone { interface: interface.name },
                Found::Again(interface) if self.rejoin(&interface) => {
                    self.presence.joined(&interface.name);
                    InterfaceChange::Back { interface: interface.name, source: None }
                }
                // It may have vanished again: the next question shows it.
                Found::Again(_) => continue,
            };
            (self.emit)(ReceiveEvent::Interface(change));
        }
    }

    /// Joins all channels on one interface; false if one of them cannot be joined.
    fn rejoin(&self, interface: &Interface) -> bool {
        let Some(listening) = &self.listening else { return true };
        let channels: BTreeSet<u8> = self.channels.joined().union(&self.joined).copied().collect();
        channels.into_iter().all(|channel| {
            let config = listening.group_on(channel, [interface]);
            config.is_none_or(|config| self.channels.rejoin(channel, &config).is_ok())
        })
    }

    /// Joins a channel on the interfaces that are there. On the others it is joined when they are
    /// back.
    pub(super) fn join_present(
        &mut self,
        channel: u8,
        config: &ReceiveConfig,
    ) -> Result<(), Error> {
        let first = self.channels.join(channel, &self.on_present(channel, config));
        if first.is_ok() {
            return Ok(());
        }
        // One of them may have vanished since the last question.
        self.presence.ask_now();
        self.watch_interfaces();
        let interfaces = self.listening.iter().flat_map(|listening| listening.interfaces());
        if interfaces.count() > 0 && self.presence.present().next().is_none() {
            return Ok(());
        }
        Ok(self.channels.join(channel, &self.on_present(channel, config))?)
    }

    fn on_present(&self, channel: u8, config: &ReceiveConfig) -> ReceiveConfig {
        let listening = self.listening.as_ref();
        let present = listening.and_then(|it| it.group_on(channel, self.presence.present()));
        present.unwrap_or_else(|| config.clone())
    }
}
