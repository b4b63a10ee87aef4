//! What sessions carry, by kind: a catalog reads control packets and says what they show.
//!
//! A catalog changes itself and the session whose packet it reads. `Reception` applies the
//! [`Discovery`]: it opens objects, accepts content and refuses sessions. A new kind of session is
//! a file in this folder, a variant of [`Catalog`] and an arm in each of its methods.

use super::config::{DecodePolicy, MetadataMode, ReceiverConfig};
use super::sessions::{Announced, EarlySymbols, Metadata, SessionState, TableCollector};
use super::transfer::Transfer;
use crate::event::{ReceiverOutput, Verified};
use crate::job::Committed;
use fcast::FcastCatalog;
use flute::FluteCatalog;
use fontana_wire::{Hash, InstanceId, Packet, Payload, Toi};
use manifest::ManifestCatalog;
use std::collections::VecDeque;
use stream::StreamCatalog;

mod collection;
mod demand;
mod discovery;
mod fcast;
mod flute;
mod foreign;
mod head;
mod manifest;
mod stream;

pub(super) use discovery::{Content, Context, Discovery, Finding};
pub(super) use manifest::content as manifest_content;
pub(super) use stream::Break;

/// The content of sessions, accepted or still to be announced.
#[derive(Debug)]
pub(super) enum Catalog {
    /// Sessions of Fontana, until a stream is accepted.
    Manifest(ManifestCatalog),
    /// The accepted stream.
    Stream(StreamCatalog),
    /// Plain FLUTE sessions.
    Flute(FluteCatalog),
    /// FCAST sessions.
    Fcast(FcastCatalog),
}

impl Catalog {
    pub(super) fn new(mode: MetadataMode) -> Self {
        match mode {
            MetadataMode::Manifest => Self::Manifest(ManifestCatalog::default()),
            MetadataMode::Flute => Self::Flute(FluteCatalog::default()),
            MetadataMode::Fcast => Self::Fcast(FcastCatalog::default()),
        }
    }

    /// What a session has announced before its first packet is read.
    pub(super) fn nothing_announced(&self) -> Announced {
        match self {
            Self::Manifest(_) | Self::Stream(_) => Announced::Head(Box::default()),
            Self::Flute(_) => Announced::Tables(TableCollector::default()),
            Self::Fcast(_) => Announced::Nothing,
        }
    }

    /// Whether the CCI of packets holds sequence numbers.
    #[inline]
    pub(super) fn numbers_packets(&self) -> bool {
        matches!(self, Self::Manifest(_) | Self::Stream(_))
    }

    /// Whether packets of this TOI are for [`Self::on_control`].
    #[inline]
    pub(super) fn is_control(&self, toi: Toi) -> bool {
        match self {
            Self::Manifest(_) | Self::Stream(_) => toi.is_control(),
            Self::Flute(_) => matches!(toi, Toi::FDT | Toi::HEAD | Toi::MANIFEST),
            Self::Fcast(_) => false,
        }
    }

    /// A packet with a symbol of a control object.
    pub(super) fn on_control(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
    ) -> Discovery {
        match self {
            Self::Manifest(catalog) => catalog.on_control(cx, session, packet, payload),
            Self::Stream(catalog) => catalog.on_control(cx, session, packet, payload),
            Self::Flute(catalog) => catalog.on_control(cx, session, packet, payload),
            Self::Fcast(_) => Discovery::Nothing,
        }
    }

    /// A packet with a symbol of the object `toi`: what its header says of the object.
    #[inline]
    pub(super) fn on_object(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        toi: Toi,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
    ) -> Discovery {
        match self {
            Self::Manifest(_) | Self::Stream(_) => Discovery::Nothing,
            Self::Flute(catalog) => catalog.on_object(cx, session, toi, packet, payload),
            Self::Fcast(catalog) => catalog.on_object(cx, session, toi, packet),
        }
    }

    /// Accepts the content that a session has on offer. `None` if there is none.
    pub(super) fn accept(
        &mut self,
        config: &ReceiverConfig,
        session: &mut SessionState,
    ) -> Option<Content> {
        let verified = self.verified(config);
        let Self::Manifest(catalog) = self else { return None };
        match session.head_state()?.metadata().cloned()? {
            Metadata::Manifest(hash, manifest) => {
                Some(manifest::content(session.key, hash, &manifest, verified))
            }
            Metadata::Index(index) => {
                let (checks, limits) = (catalog.take_checks(), &config.limits);
                let (stream, content) =
                    StreamCatalog::accept(checks, limits, session, &index, verified)?;
                *self = Self::Stream(stream);
                Some(content)
            }
        }
    }

    /// Whether a stream was accepted.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// Whether a stream was accepted that has not begun.
    pub(super) fn awaits_beginning(&self) -> bool {
        matches!(self, Self::Stream(catalog) if !catalog.has_begun())
    }

    /// The run of the sender of the accepted stream.
    pub(super) fn stream_instance(&self) -> Option<InstanceId> {
        match self {
            Self::Stream(catalog) => Some(catalog.instance()),
            Self::Manifest(_) | Self::Flute(_) | Self::Fcast(_) => None,
        }
    }

    /// Whether no further object of the accepted content will be announced.
    #[inline]
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Manifest(_) => true,
            Self::Stream(catalog) => catalog.has_ended(),
            Self::Flute(catalog) => catalog.is_final(),
            Self::Fcast(catalog) => catalog.is_final(),
        }
    }

    /// Whether all that was announced was opened or refused, and the session does not say whether
    /// more will be announced.
    #[inline]
    pub(super) fn is_open_ended(&self) -> bool {
        match self {
            Self::Flute(catalog) => catalog.is_open_ended(),
            Self::Manifest(_) | Self::Stream(_) | Self::Fcast(_) => false,
        }
    }

    /// Whether flag A of a packet may end the accepted session. Sessions of Fontana end by their
    /// manifest or index, and an FCAST session by its list of objects.
    pub(super) fn heeds_close(&self) -> bool {
        matches!(self, Self::Flute(catalog) if !catalog.is_watched())
    }

    /// Waits for further tables until the driver concludes the session.
    pub(super) fn watch(&mut self) {
        if let Self::Flute(catalog) = self {
            catalog.watch();
        }
    }

    /// Reports files that tables do not name any more.
    pub(super) fn delete_expired(&mut self) {
        if let Self::Flute(catalog) = self {
            catalog.delete_expired();
        }
    }

    /// Forgets an object that the user does not want, if its session may have no end. False if the
    /// transfer has to remember it.
    pub(super) fn deselect(&mut self, object: Toi) -> bool {
        match self {
            Self::Flute(catalog) => {
                catalog.deselect(object);
                true
            }
            Self::Manifest(_) | Self::Stream(_) | Self::Fcast(_) => false,
        }
    }

    /// Takes what was announced for all that will be.
    pub(super) fn conclude(&mut self) {
        if let Self::Flute(catalog) = self {
            catalog.conclude();
        }
    }

    /// How far verified bytes of the accepted content may be trusted.
    pub(super) fn verified(&self, config: &ReceiverConfig) -> Verified {
        match self {
            Self::Manifest(_) | Self::Stream(_) if config.expectation.publisher.is_some() => {
                Verified::Signed
            }
            Self::Manifest(_) | Self::Stream(_) => Verified::Digest,
            Self::Flute(_) | Self::Fcast(_) => Verified::None,
        }
    }

    /// When to decode. A stream has no end to wait for.
    pub(super) fn decode_policy(&self, policy: DecodePolicy) -> DecodePolicy {
        match (self, policy) {
            (Self::Stream(_), DecodePolicy::Deferred) => DecodePolicy::Incremental,
            (_, policy) => policy,
        }
    }

    /// The object that packets of this TOI are of: it may have been opened under another number,
    /// or is [collected again](collection).
    #[inline]
    pub(super) fn object_of(&self, toi: Toi) -> Toi {
        match self {
            Self::Manifest(_) | Self::Stream(_) => toi,
            Self::Flute(catalog) => catalog.current(toi),
            Self::Fcast(catalog) => catalog.current(toi),
        }
    }

    /// The bytes of an object are not what the session says of them. Whether it is collected again.
    pub(super) fn on_mismatch(&mut self, object: Toi, digest: Hash) -> bool {
        match self {
            Self::Manifest(_) | Self::Stream(_) => false,
            Self::Flute(catalog) => catalog.on_mismatch(object, digest),
            Self::Fcast(catalog) => catalog.on_mismatch(object, digest),
        }
    }

    /// Whether symbols of an object that is not open are of no use.
    pub(super) fn is_useless(&self, toi: Toi) -> bool {
        match self {
            Self::Manifest(_) => false,
            Self::Stream(catalog) => catalog.is_useless(toi),
            Self::Flute(catalog) => catalog.is_useless(toi),
            Self::Fcast(catalog) => catalog.is_useless(toi),
        }
    }

    /// Drops symbols that a stream has moved past. Returns their cost.
    pub(super) fn discard_useless(&self, early: &mut EarlySymbols) -> usize {
        match self {
            Self::Stream(catalog) => early.discard(|toi| catalog.is_useless(toi)),
            Self::Manifest(_) | Self::Flute(_) | Self::Fcast(_) => 0,
        }
    }

    /// An object was committed. A stream forgets the fragment; a descriptor is read. Returns the
    /// objects that are superseded.
    pub(super) fn on_committed(
        &mut self,
        config: &ReceiverConfig,
        committed: Committed,
        transfer: &mut Transfer,
        out: &mut VecDeque<ReceiverOutput>,
    ) -> Vec<Toi> {
        let verified = self.verified(config);
        match (self, committed) {
            (Self::Stream(catalog), Committed::Content { toi }) => {
                out.extend(catalog.on_committed(toi, transfer).map(ReceiverOutput::Event));
            }
            (Self::Flute(catalog), Committed::Content { toi }) => {
                transfer.on_committed(toi, verified, out);
                return catalog.on_committed(toi);
            }
            (_, Committed::Content { toi }) => transfer.on_committed(toi, verified, out),
            (Self::Fcast(catalog), Committed::Descriptor { toi, instance }) => {
                if transfer.on_descriptor_read(toi) {
                    catalog.on_descriptor(instance, transfer);
                }
            }
            // No driver finds descriptors elsewhere.
            (_, Committed::Descriptor { .. }) => {}
        }
        Vec::new()
    }

    /// Whether complete objects are forgotten: the content may have no end.
    pub(super) fn forgets_complete(&self) -> bool {
        matches!(self, Self::Flute(_))
    }

    /// Why the rest of the content can no longer be received, if it is a stream.
    /// `lost`: packets that were lost so far.
    pub(super) fn check(&self, transfer: &Transfer, lost: u64) -> Option<Break> {
        match self {
            Self::Stream(catalog) => catalog.check(transfer, lost),
            Self::Manifest(_) | Self::Flute(_) | Self::Fcast(_) => None,
        }
    }
}
