//! Commands to a running session.

use crossbeam_channel::{Receiver, Sender, unbounded};
use fontana_proto::SessionKey;

/// A command to a session.
pub(super) enum Command {
    Accept(SessionKey),
}

/// Gives commands to a running session, from other threads.
#[derive(Clone, Debug)]
pub(crate) struct Commands(Sender<Command>);

/// Both ends of a session's commands.
pub(super) fn command_channel() -> (Commands, Receiver<Command>) {
    let (commands, receiver) = unbounded();
    (Commands(commands), receiver)
}

impl Commands {
    /// Accepts a session that was offered.
    pub(crate) fn accept(&self, session: SessionKey) {
        // A session that has ended accepts nothing.
        let _ = self.0.send(Command::Accept(session));
    }
}
