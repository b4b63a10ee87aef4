//! The body of an answer: pieces that a task makes while the client takes them.

use super::symbols::RUN_BYTES;
use crate::error::Error;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of a piece of a file.
pub(super) const PIECE: usize = RUN_BYTES;

/// A piece, or why there are no more.
pub(super) type Piece = Result<Bytes, Arc<Error>>;

/// A body whose pieces come from a task.
pub(super) struct PieceBody {
    pieces: Receiver<Piece>,
    /// Bytes that are left; `None` if there is no end.
    left: Option<u64>,
}

impl PieceBody {
    /// A body of this length, and where its pieces go. So many bytes wait for a client at most:
    /// half of them here. As many again may be in the connection and in the hands of the task.
    pub(super) fn new(length: Option<u64>, waiting_bytes: usize) -> (Sender<Piece>, Self) {
        let (sender, pieces) = channel((waiting_bytes / 2 / PIECE).max(1));
        (sender, Self { pieces, left: length })
    }
}

impl Body for PieceBody {
    type Data = Bytes;
    type Error = Arc<Error>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Arc<Error>>>> {
        self.pieces.poll_recv(context).map(|piece| {
            let piece = piece?;
            if let (Ok(piece), Some(left)) = (&piece, &mut self.left) {
                *left = left.saturating_sub(piece.len() as u64);
            }
            Some(piece.map(Frame::data))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 32 MiB, and with the default memory.
    #[test]
    fn half_of_what_may_wait_for_a_client_waits_here() {
        for (waiting_bytes, pieces) in [(512 << 10, 1), (4 << 20, 8), (0, 1)] {
            let (sender, _body) = PieceBody::new(None, waiting_bytes);
            let taken = (0..100).take_while(|_| sender.try_send(Ok(Bytes::new())).is_ok()).count();
            assert_eq!(taken, pieces, "{waiting_bytes}");
        }
    }
}
