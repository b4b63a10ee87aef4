//! The other receivers of a site: what the receiver asks them for, and sends them
//! ([`crate::share`]).

use super::Receiver;
use super::shared::ShareOrigin;
use crate::datagram::{Datagram, DatagramBatch};
use crate::endpoint::{BatchId, BlockId, Destination, Output, SymbolId};
use crate::event::{ReceiverEvent, ReceiverOutput};
use crate::job::{BlockStock, ReceiveJob};
use crate::share::{
    GONE_AFTER, ShareAnswer, ShareConfig, ShareOutput, ShareStats, Sharer, SiteTurn,
};
use crate::time::Instant;
use fontana_wire::{
    Hash, Manifest, ShareBody, ShareContent, ShareMessage, ShareRequest, ShareSymbol, SharedBlock,
};
use std::time::Duration;

/// Symbols that a receiver sends at once for addresses from which nothing right has come, for each
/// symbol of its content.
const MOST_COPIES: u64 = 2;
/// A complete receiver stays for so many times [`SiteConfig::stays`] at most: any host can ask for
/// ever.
const MOST_STAYS: u32 = 10;
/// Longest time that the sender is believed to take for what is lacking.
const LONGEST_OFFER: Duration = Duration::from_secs(60);

/// How a receiver shares with those of its site.
#[derive(Clone, Copy, Debug)]
pub struct SiteConfig {
    /// Seed of its random waits.
    pub seed: u64,
    /// The number that it has drawn.
    pub member: u32,
    /// Bytes per second of symbols that it sends, at most.
    pub bytes_per_second: u64,
    /// How long it stays after it has last sent something for a request, when it is complete: ten
    /// times this at most.
    pub stays: Duration,
    /// The same, if the session has brought symbols of use until then, so that others get them from
    /// the sender.
    pub stays_beside_sender: Duration,
    /// When it asks others.
    pub turn: SiteTurn,
}

/// A receiver's part in its site.
#[derive(Debug)]
pub(super) struct Site {
    config: SiteConfig,
    /// The content that it shares, from when it is accepted.
    shared: Option<(ShareContent, Sharer)>,
    /// When that was.
    began: Instant,
    /// What it has shared, if it shares nothing any more.
    left: Option<ShareStats>,
}

impl Site {
    /// Content was accepted.
    pub(super) fn begin(&mut self, now: Instant, hash: Hash, manifest: &Manifest) {
        if self.left.is_some() {
            return;
        }
        self.began = now;
        let SiteConfig { seed, member, bytes_per_second, turn, .. } = self.config;
        let max_unproven_bytes = manifest.transfer_length().saturating_mul(MOST_COPIES);
        let config = ShareConfig { seed, member, bytes_per_second, max_unproven_bytes, turn };
        self.shared = Some((hash.into(), Sharer::new(config)));
    }

    /// Until when a receiver that is complete since `ended_at` waits for requests. `None`: it has
    /// nothing to share.
    pub(super) fn waits_until(&self, ended_at: Instant) -> Option<Instant> {
        let (_, sharer) = self.shared.as_ref()?;
        let SiteConfig { stays, stays_beside_sender, .. } = self.config;
        let stays = match ended_at < sharer.session_at() + GONE_AFTER {
            true => stays_beside_sender,
            false => stays,
        };
        let until = sharer.answered_at().max(ended_at) + stays;
        Some(until.min(ended_at + stays.saturating_mul(MOST_STAYS)))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.shared.as_ref().map(|(_, sharer)| sharer.poll_timeout())
    }

    /// Symbols were read, or cannot be.
    pub(super) fn handle_read(&mut self, now: Instant, block: BlockId, batch: u32, is_read: bool) {
        if let Some((_, sharer)) = &mut self.shared {
            sharer.on_read(now, block, batch, is_read);
        }
    }

    /// The sender of the session sends what is requested, and nothing else. So many symbols of all
    /// are lacking.
    pub(super) fn handle_offer(&mut self, now: Instant, lacking: u64, of: u64) {
        if let Some((_, sharer)) = &mut self.shared {
            let has = of.saturating_sub(lacking).max(1);
            let times = lacking as f64 / has as f64;
            let elapsed = now.saturating_since(self.began);
            sharer.on_offer(now, elapsed.mul_f64(times).min(LONGEST_OFFER));
        }
    }

    /// The number of symbols that the sender may be asked for, at most, of a block that lacks some.
    pub(super) fn asks_sender(&self, now: Instant, block: BlockId) -> u32 {
        self.shared.as_ref().map_or(u32::MAX, |(_, sharer)| sharer.asks_sender(now, block))
    }

    fn stats(&self) -> ShareStats {
        let now = self.shared.as_ref().map(|(_, sharer)| sharer.stats());
        now.or(self.left).unwrap_or_default()
    }
}

impl Receiver {
    /// The receiver, which shares with others of its site. To be called before anything is
    /// received.
    #[must_use]
    pub fn with_site(self, config: SiteConfig) -> Self {
        let site = Site { config, shared: None, began: Instant::ZERO, left: None };
        Self { site: Some(Box::new(site)), ..self }
    }

    /// Shares nothing any more: its host cannot send, or it has stayed long enough.
    pub fn leave_site(&mut self) {
        if let Some(site) = &mut self.site {
            site.left.get_or_insert(site.stats());
            site.shared = None;
        }
    }

    /// What it has shared.
    pub fn share_stats(&self) -> ShareStats {
        self.site.as_ref().map(|site| site.stats()).unwrap_or_default()
    }

    /// Handles a message of another receiver.
    pub(super) fn handle_site(
        &mut self,
        now: Instant,
        batch: &DatagramBatch<'_>,
        datagram: &Datagram,
    ) {
        let bytes = batch.bytes(&datagram.payload).unwrap_or_default();
        let Ok(message) = ShareMessage::parse(bytes) else { return };
        let Some(mut site) = self.site.take() else { return };
        if let Some((content, sharer)) = &mut site.shared
            && message.content == *content
        {
            let origin = ShareOrigin { from: datagram.from.ip(), end: datagram.payload.end };
            self.handle_share(now, sharer, origin, &message, batch.slab);
        }
        self.site = Some(site);
    }

    /// The next output of the site. A block whose requests were in vain may cause outputs of the
    /// reception, which come first.
    pub(super) fn poll_site(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<ReceiverOutput> {
        let mut site = self.site.take()?;
        let mut asks_sender = false;
        let output = match &mut site.shared {
            Some((content, sharer)) => loop {
                let Some(output) = sharer.poll(now, &*self) else { break None };
                let own = (*content, site.config.member);
                match output {
                    ShareOutput::Vain { block } => {
                        self.drop_shared(block);
                        if let Some(output) = self.reception.poll_output(now) {
                            break Some(output);
                        }
                    }
                    ShareOutput::Ask { block, request } => {
                        break Some(ask(own, block, request, header));
                    }
                    ShareOutput::Answer(answer) => {
                        if let Some(output) = self.answer(own, &answer, header) {
                            break Some(output);
                        }
                    }
                    ShareOutput::Read { block, batch, esis, has_block } => {
                        let stock = match has_block {
                            true => BlockStock::Whole,
                            false => BlockStock::Part { repair: self.repair_in_slots(block) },
                        };
                        let read = ReceiveJob::Read { block, batch, esis, stock };
                        break Some(Output::Job(read));
                    }
                    ShareOutput::Sender { .. } => asks_sender = true,
                    ShareOutput::Lacking { blocks, symbols } => {
                        break Some(Output::Event(ReceiverEvent::SiteLacks { blocks, symbols }));
                    }
                    ShareOutput::Release { block } => {
                        break Some(Output::Job(ReceiveJob::Release { block }));
                    }
                }
            },
            None => None,
        };
        self.site = Some(site);
        if asks_sender {
            self.request_of_sender(now);
        }
        output
    }

    /// `None` if the content has no such symbol.
    fn answer(
        &self,
        own: (ShareContent, u32),
        answer: &ShareAnswer,
        header: &mut Vec<u8>,
    ) -> Option<ReceiverOutput> {
        let &ShareAnswer { block, esi, batch, index, has_block, to, echo_us } = answer;
        let size = self.reception.transfer.symbol_size(block, esi)?;
        let symbol = ShareSymbol { has_block, to, echo_us, esi: esi.0, bytes: &[] };
        emit(own, block, ShareBody::Symbol(symbol), header);
        let batch = BatchId(batch.into());
        let index = u32::try_from(index).ok()?;
        let symbol = SymbolId { block, esi, batch, index, size };
        Some(Output::Transmit { to: Destination::Site, symbol: Some(symbol) })
    }
}

fn ask(
    own: (ShareContent, u32),
    block: BlockId,
    request: ShareRequest,
    header: &mut Vec<u8>,
) -> ReceiverOutput {
    emit(own, block, ShareBody::Request(request), header);
    Output::Transmit { to: Destination::Site, symbol: None }
}

fn emit(
    (content, member): (ShareContent, u32),
    block: BlockId,
    body: ShareBody<'_>,
    header: &mut Vec<u8>,
) {
    let block = SharedBlock { toi: block.toi.0 as u32, sbn: block.sbn.0 };
    ShareMessage { content, member, block, body }.emit(header);
}
