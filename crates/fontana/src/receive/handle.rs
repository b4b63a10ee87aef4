//! Commands to a running session.

use crossbeam_channel::{Receiver, Sender, unbounded};
use fontana_proto::SessionKey;

/// A command to a session.
pub(super) enum Command {
    Accept(SessionKey),
}

/// A handle to a running session, for other threads.
#[derive(Clone, Debug)]
pub struct ReceiveHandle {
    commands: Sender<Command>,
}

/// The handle of a session, and the commands that arrive by it.
pub(super) fn command_channel() -> (ReceiveHandle, Receiver<Command>) {
    let (commands, receiver) = unbounded();
    (ReceiveHandle { commands }, receiver)
}

impl ReceiveHandle {
    /// Accepts a session that was offered.
    pub fn accept(&self, session: SessionKey) {
        // A session that has ended accepts nothing.
        let _ = self.commands.send(Command::Accept(session));
    }
}
