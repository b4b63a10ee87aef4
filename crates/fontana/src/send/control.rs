//! The control objects of a session: session head, manifest, file delivery table, FCAST descriptor.

use super::carousel::{self, Geometry};
use super::egress::{CENC_BYTES, FDT_EXTENSION_BYTES};
use super::options::SendOptions;
use super::renewal::HeadRenewal;
use crate::certificate::Certificate;
use crate::content::Content;
use crate::error::{Error, SetupError};
use crate::format::{FcastFormat, FluteFormat, Format};
use crate::geometry::{self, FTI_BYTES};
use crate::system::{expires_after, milliseconds_since_1970};
use fontana_proto::{Announcement, AnnouncementIntervals, ControlObject, control_oti};
use fontana_wire::{
    CongestionControl, ContentEncoding, FdtExtension, FluteVersion, Hash, HeadRecords, InstanceId,
    Manifest, SessionHead, Toi,
};
use std::num::NonZeroU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Validity of a file delivery table; longer than any session.
const FDT_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// The control objects of a session.
#[derive(Default)]
pub(super) struct ControlObjects {
    pub(super) objects: Vec<ControlObject>,
    /// Renews the head, if it expires.
    pub(super) renewal: Option<HeadRenewal>,
}

/// The bytes of a manifest, and their hash.
pub(super) struct EmittedManifest {
    bytes: Vec<u8>,
    pub(super) hash: Hash,
}

impl EmittedManifest {
    pub(super) fn of(manifest: &Manifest) -> Self {
        let bytes = manifest.emit();
        Self { hash: fontana_wire::manifest_hash(&bytes), bytes }
    }
}

/// What a head says of a run of a sender, beside its options.
pub(super) struct Announced<'a> {
    pub(super) instance: InstanceId,
    pub(super) congestion_control: &'a CongestionControl,
    pub(super) records: HeadRecords,
}

/// The control objects: session head, manifest and file delivery table; only the table for plain
/// FLUTE and FCAST, which have no manifest, or the descriptor of FCAST's carousel.
pub(super) fn control_objects(
    options: &SendOptions,
    announced: Announced<'_>,
    content: &Content,
    manifest: Option<&EmittedManifest>,
    symbol_size: u16,
) -> Result<ControlObjects, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut control = Vec::new();
    if let Format::Fcast(FcastFormat { growing, .. }) = options.format {
        let geometry = Geometry { code: options.code, symbol_size };
        control.push(carousel::first_descriptor(geometry, content, growing)?);
        return Ok(ControlObjects { objects: control, ..ControlObjects::default() });
    }
    let (is_plain, FluteFormat { version, content_encoding, table_lifetime }) = match options.format
    {
        Format::Flute(flute) => (true, flute),
        _ => (false, FluteFormat::default()),
    };
    let size = match is_plain {
        true => symbol_size - FTI_BYTES,
        false => geometry::control_symbol_size(symbol_size),
    };
    let mut renewal = None;
    if let Some(manifest) = manifest {
        let lifetime = options.head_lifetime().filter(|_| options.certificate().is_none());
        let Announced { instance, congestion_control, records } = announced;
        let announcement = Announcement {
            version: options.version(),
            expires_unix_seconds: lifetime.and_then(expires_after),
            rate_bytes_per_second: NonZeroU64::new(options.rate.as_bytes_per_second()),
            congestion_control: congestion_control.clone(),
            records,
            ..Announcement::of_manifest(instance, &manifest.bytes)
        };
        let intervals = AnnouncementIntervals::default();
        let [mut head, manifest] =
            announcement.control_objects(size, options.signer(), intervals)?;
        if let Some(certificate) = options.certificate() {
            head = certified_head(options, certificate, &announcement.head(size), size)?;
        }
        control.extend([head, manifest]);
        renewal = lifetime.zip(options.signer()).map(|(lifetime, signer)| HeadRenewal {
            head: announcement.head(size),
            signer: signer.clone(),
            symbol_size: size,
            intervals: intervals.head,
            lifetime,
            signed_at: Duration::ZERO,
        });
    }
    let usual = match content.table_instance() {
        Some(_) => FluteFormat::GROWING_LIFETIME,
        None => FDT_LIFETIME,
    };
    let lifetime = table_lifetime.unwrap_or(usual);
    let xml = content.file_delivery_table(now + lifetime).emit(version);
    // Compression saves no packet where one is enough, and programs that know only version 1 do not
    // decompress a table.
    let is_short = xml.len() <= usize::from(size - FDT_EXTENSION_BYTES);
    let table_encoding = match version {
        FluteVersion::V2 if !is_short => content_encoding,
        _ => ContentEncoding::Null,
    };
    let mut table = Vec::new();
    fontana_wire::encode(table_encoding, &mut &xml[..], &mut table)
        .map_err(Error::system("compress the file delivery table"))?;
    let extensions = match table_encoding {
        ContentEncoding::Null => FDT_EXTENSION_BYTES,
        _ => FDT_EXTENSION_BYTES + CENC_BYTES,
    };
    let (length, size) = (table.len(), size - extensions);
    let oti = match is_plain {
        true => geometry::plain_control_oti(options.code, length, size),
        false => control_oti(length, size),
    };
    let extension = FdtExtension {
        version: version.number(),
        // Another run with the same TSI has another table (RFC 6726, section 3.4.1).
        instance_id: content
            .table_instance()
            .unwrap_or(now.as_secs() as u32 & FdtExtension::MAX_INSTANCE_ID),
    };
    let rhythm = if is_plain { 1 } else { 4 };
    let table = ControlObject::new(Toi::FDT, oti, &table, Some(extension), rhythm)?;
    let table = table.encoded(table_encoding);
    control.push(if is_plain { table.without_padding() } else { table });
    if let Some((tois, oti)) = content.empty_files() {
        control.push(ControlObject::empty_files(&tois, oti, rhythm));
    }
    Ok(ControlObjects { objects: control, renewal })
}

/// The head of a certificate, if it is for the mirror's key and the content that `expected` names.
fn certified_head(
    options: &SendOptions,
    certificate: &Certificate,
    expected: &SessionHead,
    symbol_size: u16,
) -> Result<ControlObject, Error> {
    let head = certificate.head();
    let now = milliseconds_since_1970() / 1_000;
    let is_of_mirror = options.signer().is_some_and(|key| key.public_key() == certificate.mirror());
    let differs = if !is_of_mirror {
        "another key"
    } else if (head.manifest, head.manifest_version)
        != (expected.manifest, expected.manifest_version)
    {
        "another manifest"
    } else if head.has_expired(now) {
        "an earlier time: it has expired"
    } else {
        let symbol = certificate.symbol(symbol_size);
        let oti = control_oti(symbol.len(), symbol_size);
        return Ok(ControlObject::new(
            Toi::HEAD,
            oti,
            &symbol,
            None,
            AnnouncementIntervals::default().head,
        )?);
    };
    Err(SetupError::OtherCertificate(differs).into())
}
