//! LCT header extensions: EXT_NOP, EXT_AUTH and EXT_TIME (RFC 5651, section 5.2), EXT_FTI
//! (RFC 5775, section 4.2), EXT_FDT and EXT_CENC (RFC 6726, section 3.4).

use crate::bytes::{Reader, word_bytes};
use crate::content::ContentEncoding;
use crate::ntp::NtpSeconds;
use crate::packet_error::PacketError;
use crate::seal::{self, HET_AUTH, HET_NOP};

const HET_TIME: u8 = 2;
pub(crate) const HET_FTI: u8 = 64;
const HET_FDT: u8 = 192;
const HET_CENC: u8 = 193;
/// First type of the extensions that are one word without a length (RFC 5651, section 5.2).
const FIRST_FIXED: u8 = 128;

/// Largest number of extensions in a header. No standard puts more than six into one. The limit
/// bounds the work that a header of an attacker causes.
const MAX_EXTENSIONS: usize = 16;

const USE_SCT_HIGH: u16 = 0x8000;
const USE_SCT_LOW: u16 = 0x4000;
const USE_ERT: u16 = 0x2000;
const USE_SLC: u16 = 0x1000;

/// One header extension. An extension of a known type appears at most once in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension<'a> {
    /// EXT_NOP: padding.
    Nop,
    /// EXT_AUTH: authentication of the packet.
    Auth(AuthExtension<'a>),
    /// EXT_TIME: times of the sender.
    Time(TimeExtension),
    /// EXT_FTI: object transmission information. Its format depends on the FEC Encoding ID;
    /// [`fti::parse`](crate::fti::parse) reads it.
    Fti(&'a [u8]),
    /// EXT_FDT: present in packets of an FDT instance.
    Fdt(FdtExtension),
    /// EXT_CENC: content encoding of the FDT instance, unchecked; see
    /// [`ContentEncoding::from_cenc`]. Some senders write 0 (not compressed) where the RFC omits
    /// the extension.
    Cenc(u8),
    /// An extension of an unknown type. Receivers ignore it.
    Unknown {
        /// Extension type (HET).
        het: u8,
        /// Bytes after type and length.
        content: &'a [u8],
    },
}

/// EXT_AUTH, not interpreted. Sender and receiver agree on the meaning of an ASID by other means
/// (RFC 6584, section 2; RFC 5776). [`SealedDatagram`](crate::SealedDatagram) is the one of
/// Fontana.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthExtension<'a> {
    /// Authentication scheme identifier, 4 bits.
    pub asid: u8,
    /// Bytes after type and length. The upper half of the first byte is the ASID.
    pub content: &'a [u8],
}

/// A version of FLUTE that senders can choose. Receivers accept both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FluteVersion {
    /// Version 1 (RFC 3926), as 3GPP TS 26.346 and DVB profiles use it.
    V1,
    /// Version 2 (RFC 6726).
    #[default]
    V2,
}

impl FluteVersion {
    /// The number in EXT_FDT.
    pub const fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// The XML namespace of file delivery tables. That of version 1 is the one of 3GPP TS 26.346
    /// and DVB: RFC 3926 prints the name of an example.
    pub const fn namespace(self) -> &'static str {
        match self {
            Self::V1 => "urn:IETF:metadata:2005:FLUTE:FDT",
            Self::V2 => "urn:ietf:params:xml:ns:fdt",
        }
    }
}

/// EXT_FDT (RFC 6726, section 3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdtExtension {
    /// Version of FLUTE, 4 bits; see [`FluteVersion::number`].
    pub version: u8,
    /// FDT instance id, 20 bits; wraps.
    pub instance_id: u32,
}

impl FdtExtension {
    /// Largest instance id: 20 bits.
    pub const MAX_INSTANCE_ID: u32 = (1 << 20) - 1;

    pub(crate) const fn fits(self) -> bool {
        self.version <= 0xF && self.instance_id <= Self::MAX_INSTANCE_ID
    }
}

/// EXT_TIME (RFC 5651, section 5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeExtension {
    /// Time of sending as an NTP timestamp: seconds since 1900 in the upper 32 bits, fraction in
    /// the lower.
    pub sender_current_time: Option<u64>,
    /// Seconds for which the object will still be sent.
    pub expected_residual_time_seconds: Option<u32>,
    /// Time at which an object was last added, changed or removed.
    pub session_last_changed: Option<NtpSeconds>,
}

/// The extensions of a header, as an iterable sequence.
///
/// The header's parser has checked them, so iteration cannot fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extensions<'a>(&'a [u8]);

impl<'a> Extensions<'a> {
    /// Checks `area`, the words between the TOI and the header's end.
    #[inline]
    pub(crate) fn check(area: &'a [u8]) -> Result<Self, PacketError> {
        // Nearly every packet has no extension.
        if area.is_empty() { Ok(Self(area)) } else { Self::walk(area) }
    }

    fn walk(area: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(area);
        let (mut count, mut seen) = (0_usize, 0);
        while !reader.is_empty() {
            let (het, extension) = next(&mut reader)?;
            count = count.saturating_add(1);
            if count > MAX_EXTENSIONS {
                return Err(PacketError::ExtensionCount { limit: MAX_EXTENSIONS });
            }
            let bit = match extension {
                Extension::Nop | Extension::Unknown { .. } => 0,
                Extension::Auth(_) => 0x01,
                Extension::Time(_) => 0x02,
                Extension::Fti(_) => 0x04,
                Extension::Fdt(_) => 0x08,
                Extension::Cenc(_) => 0x10,
            };
            if seen & bit != 0 {
                return Err(PacketError::RepeatedExtension { het });
            }
            seen |= bit;
        }
        Ok(Self(area))
    }

    /// EXT_FDT, if present.
    pub fn fdt(self) -> Option<FdtExtension> {
        self.into_iter().find_map(|extension| match extension {
            Extension::Fdt(fdt) => Some(fdt),
            _ => None,
        })
    }

    /// Content of EXT_FTI, if present, for [`fti::parse`](crate::fti::parse).
    pub fn fti(self) -> Option<&'a [u8]> {
        self.into_iter().find_map(|extension| match extension {
            Extension::Fti(content) => Some(content),
            _ => None,
        })
    }

    /// Content encoding of EXT_CENC, if present, for [`ContentEncoding::from_cenc`].
    pub fn cenc(self) -> Option<u8> {
        self.into_iter().find_map(|extension| match extension {
            Extension::Cenc(cenc) => Some(cenc),
            _ => None,
        })
    }

    /// EXT_TIME, if present.
    pub fn time(self) -> Option<TimeExtension> {
        self.into_iter().find_map(|extension| match extension {
            Extension::Time(time) => Some(time),
            _ => None,
        })
    }

    /// EXT_AUTH, if present.
    pub fn auth(self) -> Option<AuthExtension<'a>> {
        self.into_iter().find_map(|extension| match extension {
            Extension::Auth(auth) => Some(auth),
            _ => None,
        })
    }
}

impl Extensions<'_> {
    /// True if the packet is [encrypted](crate::SealMode::Encrypted) with a group key. A receiver
    /// that has the key decrypts a packet before it parses it.
    #[inline]
    pub fn are_of_encrypted(self) -> bool {
        !self.0.is_empty() && self.auth().is_some_and(|auth| seal::is_encrypted(auth.content))
    }
}

impl<'a> IntoIterator for Extensions<'a> {
    type Item = Extension<'a>;
    type IntoIter = ExtensionsIter<'a>;

    fn into_iter(self) -> ExtensionsIter<'a> {
        ExtensionsIter(Reader::new(self.0))
    }
}

/// Iterator over the [`Extensions`] of a header, in their order.
#[derive(Clone, Debug)]
pub struct ExtensionsIter<'a>(Reader<'a>);

impl<'a> Iterator for ExtensionsIter<'a> {
    type Item = Extension<'a>;

    fn next(&mut self) -> Option<Extension<'a>> {
        // `Extensions::check` found no error in the same bytes; an empty reader ends the iteration.
        next(&mut self.0).ok().map(|(_, extension)| extension)
    }
}

/// Takes one extension, of at least one word, off the front. The number is its type.
fn next<'a>(reader: &mut Reader<'a>) -> Result<(u8, Extension<'a>), PacketError> {
    let mut words = *reader;
    let het = reader.u8().ok_or(PacketError::Extension { het: 0 })?;
    let malformed = PacketError::Extension { het };
    let (words_count, prefix) =
        if het < FIRST_FIXED { (reader.u8().ok_or(malformed)?, 2) } else { (1, 1) };
    let whole = words.take(word_bytes(words_count)).ok_or(malformed)?;
    // An extension of zero words fails here: it has no prefix to skip.
    let content = whole.get(prefix..).ok_or(malformed)?;
    *reader = words;
    let extension = match het {
        HET_NOP => Extension::Nop,
        HET_AUTH => {
            let first = content.first().ok_or(malformed)?;
            Extension::Auth(AuthExtension { asid: first >> 4, content })
        }
        HET_TIME => Extension::Time(parse_time(content).ok_or(malformed)?),
        HET_FTI => Extension::Fti(content),
        HET_FDT => {
            let value = Reader::new(content).uint(3).ok_or(malformed)? as u32;
            let (version, instance_id) =
                ((value >> 20) as u8, value & FdtExtension::MAX_INSTANCE_ID);
            Extension::Fdt(FdtExtension { version, instance_id })
        }
        HET_CENC => Extension::Cenc(*content.first().ok_or(malformed)?),
        _ => Extension::Unknown { het, content },
    };
    Ok((het, extension))
}

/// Reads the content of EXT_TIME. The words follow in the order of the flags that announce them.
/// Later words belong to flags that are reserved or not defined here.
fn parse_time(content: &[u8]) -> Option<TimeExtension> {
    let mut reader = Reader::new(content);
    let flags = reader.u16()?;
    let mut word = |flag| {
        if flags & flag == 0 { Some(None) } else { reader.u32().map(Some) }
    };
    let (high, low) = (word(USE_SCT_HIGH)?, word(USE_SCT_LOW)?);
    let expected_residual_time_seconds = word(USE_ERT)?;
    let session_last_changed = word(USE_SLC)?.map(NtpSeconds);
    let sender_current_time = match (high, low) {
        (Some(high), low) => Some(u64::from(high) << 32 | u64::from(low.unwrap_or(0))),
        (None, None) => None,
        // A fraction without its second.
        (None, Some(_)) => return None,
    };
    Some(TimeExtension {
        sender_current_time,
        expected_residual_time_seconds,
        session_last_changed,
    })
}

pub(crate) fn emit_time(time: TimeExtension, out: &mut Vec<u8>) {
    let words = [
        (USE_SCT_HIGH, time.sender_current_time.map(|ntp| (ntp >> 32) as u32)),
        (USE_SCT_LOW, time.sender_current_time.map(|ntp| ntp as u32)),
        (USE_ERT, time.expected_residual_time_seconds),
        (USE_SLC, time.session_last_changed.map(|ntp| ntp.0)),
    ];
    let present = words.iter().filter_map(|&(flag, word)| Some((flag, word?)));
    let flags = present.clone().fold(0, |flags, (flag, _)| flags | flag);
    out.extend([HET_TIME, (present.clone().count() as u8).saturating_add(1)]);
    out.extend(flags.to_be_bytes());
    out.extend(present.flat_map(|(_, word)| word.to_be_bytes()));
}

pub(crate) fn emit_fdt(fdt: FdtExtension, out: &mut Vec<u8>) {
    let word = u32::from(HET_FDT) << 24 | u32::from(fdt.version) << 20 | fdt.instance_id;
    out.extend(word.to_be_bytes());
}

pub(crate) fn emit_cenc(encoding: ContentEncoding, out: &mut Vec<u8>) {
    out.extend([HET_CENC, encoding.cenc(), 0, 0]);
}
