//! Packets of content that are too long for the path, while the short ones of the head, the
//! manifest and roll calls arrive.

use fontana::wire::Manifest;
use fontana::{ReceiveProgress, ReceiverStats};
use fontana_console::units::{Count, Time};
use std::time::Duration;

/// Time after the manifest without a symbol: a sender sends symbols all the time, unless it rests
/// or has sent everything.
const PATIENCE: Duration = Duration::from_secs(5);

/// What arrives while a reception has its manifest and no symbol.
#[derive(Debug, Default)]
pub(super) struct TooLong {
    /// When the manifest was there.
    since: Option<Duration>,
    is_told: bool,
}

impl TooLong {
    /// Another version is received: its manifest is there.
    pub(super) fn begin(&mut self) {
        self.since = None;
    }

    /// The message and the hint, once, if the time has come.
    pub(super) fn poll(
        &mut self,
        progress: &ReceiveProgress,
        symbol_size: Option<u16>,
    ) -> Option<(String, String)> {
        let symbol_size = symbol_size?;
        let since = *self.since.get_or_insert(progress.elapsed);
        let is_due = !self.is_told && progress.elapsed >= since + PATIENCE;
        let (message, hint) = describe(progress, symbol_size).filter(|_| is_due)?;
        self.is_told = true;
        Some((format!("{message} in {}", Time(PATIENCE)), hint))
    }
}

/// The message and the hint if control packets arrived and no symbol of the content, which was
/// wanted. `symbol_size` in bytes.
pub(super) fn describe(progress: &ReceiveProgress, symbol_size: u16) -> Option<(String, String)> {
    let stats = &progress.stats;
    if progress.symbols_wanted == 0 || stats.control_packets == 0 || symbols(stats) > 0 {
        return None;
    }
    let message = format!(
        "{} of the table of contents arrived, and none with a symbol of the content, of {symbol_size} \
         bytes and headers",
        Count(stats.control_packets, "packet"),
    );
    let hint = format!(
        "if all other receivers are complete, the sender rests, and does not hear this one: see \
         that its packets reach the sender, or start the sender with --one-way\notherwise a link \
         on the path has an MTU below {}: start the sender with smaller ones (--symbol-size 1024), \
         or raise the MTU (tracepath ADDRESS shows it)",
        usize::from(symbol_size) + HEADERS,
    );
    Some((message, hint))
}

/// Bytes of the symbols of the content; `None` if it has none.
pub(super) fn symbol_size(manifest: &Manifest) -> Option<u16> {
    manifest.objects().first().map(|object| object.oti.symbol_size)
}

/// Headers of IPv4, UDP, LCT and a symbol.
const HEADERS: usize = 20 + 8 + 16 + 4;

fn symbols(stats: &ReceiverStats) -> u64 {
    stats.session_packets.saturating_sub(stats.control_packets) + stats.deselected + stats.pulled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(seconds: u64, control_packets: u64, session_packets: u64) -> ReceiveProgress {
        let stats = ReceiverStats { control_packets, session_packets, ..ReceiverStats::default() };
        let mut progress = ReceiveProgress::default();
        (progress.elapsed, progress.stats) = (Duration::from_secs(seconds), stats);
        progress.symbols_wanted = 4;
        progress
    }

    #[test]
    fn short_packets_alone_name_the_size_of_symbols_once() {
        let mut state = TooLong::default();
        let mut poll =
            |seconds, control, all| state.poll(&progress(seconds, control, all), Some(1328));
        assert_eq!(poll(1, 5, 5), None);
        assert_eq!(poll(5, 25, 25), None, "too soon");
        assert_eq!(poll(6, 25, 26), None, "a symbol arrived");
        let (message, hint) = poll(6, 25, 25).unwrap();
        assert!(message.contains("25 packets") && message.contains("1328 bytes"), "{message}");
        assert!(hint.contains("--symbol-size") && hint.contains("1376"), "{hint}");
        assert_eq!(poll(7, 30, 30), None, "told once");
        // A follower has waited for minutes until a version came.
        let mut state = TooLong::default();
        assert_eq!(state.poll(&progress(1, 9, 10), Some(1328)), None);
        state.begin();
        assert_eq!(state.poll(&progress(300, 2, 2), Some(1328)), None);
        assert!(state.poll(&progress(305, 9, 9), Some(1328)).is_some());
        assert_eq!(describe(&progress(9, 0, 0), 1328), None);
    }
}
