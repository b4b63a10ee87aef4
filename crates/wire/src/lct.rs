//! The LCT header (RFC 5651, section 5, with the profile of RFC 5775, section 2.1).
//! [`Packet`](crate::Packet) parses it; [`HeaderFields`] emits it.

use crate::bytes::{Reader, put_uint, word_bytes};
use crate::content::ContentEncoding;
use crate::extension::{self, Extensions, FdtExtension, TimeExtension};
use crate::fti;
use crate::fti::FtiError;
use crate::id::{Cci, Toi, Tsi};
use crate::packet_error::PacketError;
use crate::seal::{self, SealField};
use fontana_fec::Oti;

/// The only version of LCT (RFC 5651, section 5.1).
const VERSION: u16 = 1;
/// Flags of the first two bytes.
const CLOSE_SESSION: u16 = 0x2;
const CLOSE_OBJECT: u16 = 0x1;
/// The two bits that RFC 3451 calls T and R, and that RFC 5651 reserves.
const SENDER_CURRENT_TIME: u16 = 0x8;
const EXPECTED_RESIDUAL_TIME: u16 = 0x4;

/// Meaning of the two bits between H and A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReservedBits {
    /// T and R of RFC 3451: each announces a 32-bit word after the TOI. This reading is safe when
    /// the sender's version is not known, because senders of RFC 5651 clear both bits.
    #[default]
    Times,
    /// Reserved bits of RFC 5651, which are ignored. For sessions that are known to follow it, such
    /// as those of FLUTE version 2.
    Ignored,
}

/// Header of a received packet.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-------+---+---+-+---+-+---+-+-+---------------+---------------+
/// | V = 1 | C |PSI|S| O |H|Res|A|B|    HDR_LEN    |   Codepoint   |
/// +-------+---+---+-+---+-+---+-+-+---------------+---------------+
/// |  congestion control information: C + 1 words                  |
/// |  TSI: 32 S + 16 H bits, then TOI: 32 O + 16 H bits            |
/// |  header extensions, until HDR_LEN words are full              |
/// +---------------------------------------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Congestion control information.
    pub cci: Cci,
    /// Protocol-specific indication, 2 bits. Value 2 is ALC's source packet indicator. Only FEC
    /// schemes with two kinds of payload id use it (RFC 5775, section 2.1).
    pub psi: u8,
    /// Session identifier; the source address of the datagram completes it.
    pub tsi: Tsi,
    /// Object identifier; `None` in a packet about the session as a whole.
    pub toi: Option<Toi>,
    /// Flag A: the session ends soon. It is a hint, and not authenticated.
    pub close_session: bool,
    /// Flag B: the object ends soon. It is a hint, and not authenticated.
    pub close_object: bool,
    /// Codepoint. In a FLUTE session it is the FEC Encoding ID of the object; see
    /// [`Packet::payload`](crate::Packet::payload).
    pub codepoint: u8,
    /// Sender current time of RFC 3451, in milliseconds since the session began.
    pub sender_current_time_milliseconds: Option<u32>,
    /// Expected residual time of RFC 3451, in milliseconds.
    pub expected_residual_time_milliseconds: Option<u32>,
    /// Checked header extensions.
    pub extensions: Extensions<'a>,
}

impl<'a> Header<'a> {
    /// Parses the header of `datagram`; returns it with the bytes after it.
    #[inline]
    pub(crate) fn parse(
        datagram: &'a [u8],
        reserved: ReservedBits,
    ) -> Result<(Self, &'a [u8]), PacketError> {
        let truncated = PacketError::Truncated { actual: datagram.len() };
        let mut start = Reader::new(datagram);
        let flags = start.u16().ok_or(truncated)?;
        let header_length = word_bytes(start.u8().ok_or(truncated)?);
        let codepoint = start.u8().ok_or(truncated)?;
        if flags >> 12 != VERSION {
            return Err(PacketError::Version((flags >> 12) as u8));
        }
        let Some((header, rest)) = datagram.split_at_checked(header_length) else {
            return Err(PacketError::HeaderLength { header_length, available: datagram.len() });
        };
        // From here on the header's end is the limit: bytes beyond it belong to the payload.
        let short = PacketError::HeaderLength { header_length, available: header_length };
        let mut fields = Reader::new(header);
        fields.take(4).ok_or(short)?;
        let widths = Widths { s: flags >> 7 & 1, o: flags >> 5 & 3, h: flags >> 4 & 1 };
        let toi_size = widths.toi_size();
        if widths.tsi_size() == 0 {
            return Err(PacketError::NoTsi);
        }
        let words = ((flags >> 10 & 3) as u8).saturating_add(1);
        let cci = fields.uint(word_bytes(words)).and_then(|value| Cci::new(value, words));
        let tsi = fields.uint(widths.tsi_size()).ok_or(short)?;
        let toi = fields.uint(toi_size).ok_or(short)?;
        let times = if reserved == ReservedBits::Times { flags } else { 0 };
        let mut time = |flag| match times & flag {
            0 => Ok(None),
            _ => fields.u32().map(Some).ok_or(short),
        };
        let sender_current_time_milliseconds = time(SENDER_CURRENT_TIME)?;
        let expected_residual_time_milliseconds = time(EXPECTED_RESIDUAL_TIME)?;
        let header = Self {
            cci: cci.ok_or(short)?,
            psi: (flags >> 8 & 3) as u8,
            tsi: Tsi(tsi as u64),
            toi: (toi_size > 0).then_some(Toi(toi)),
            close_session: flags & CLOSE_SESSION != 0,
            close_object: flags & CLOSE_OBJECT != 0,
            codepoint,
            sender_current_time_milliseconds,
            expected_residual_time_milliseconds,
            extensions: Extensions::check(fields.rest())?,
        };
        Ok((header, rest))
    }
}

/// Width of TSI and TOI in a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdWidths {
    /// 32 bits each if both values fit, so that every packet of a session has a header of the same
    /// size; otherwise as [`IdWidths::Narrowest`]. The values of Fontana fit.
    #[default]
    Fixed32,
    /// The fewest bytes that hold both values. Of several choices with the same size, the one whose
    /// TSI and TOI are whole words.
    Narrowest,
}

/// Fields of the header of a packet to be sent.
///
/// ```
/// use fontana_wire::{Cci, HeaderFields, Toi, Tsi};
///
/// let fields = HeaderFields {
///     cci: Cci::from_u32(42),
///     codepoint: 6,
///     ..HeaderFields::new(Tsi(7), Some(Toi(1)))
/// };
/// let mut datagram = Vec::new();
/// fields.emit(&mut datagram);
/// assert_eq!(datagram.len(), 16);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderFields {
    /// Session identifier.
    pub tsi: Tsi,
    /// Object identifier; `None` only in a packet that closes the session.
    pub toi: Option<Toi>,
    /// Width of both identifiers.
    pub widths: IdWidths,
    /// Congestion control information.
    pub cci: Cci,
    /// FEC Encoding ID of the object.
    pub codepoint: u8,
    /// Flag A: the session ends soon.
    pub close_session: bool,
    /// Flag B: the object ends soon.
    pub close_object: bool,
    /// EXT_FDT, present in every packet of an FDT instance.
    pub fdt: Option<FdtExtension>,
    /// EXT_CENC: compression of an FDT instance; `None` if it is not compressed.
    pub content_encoding: Option<ContentEncoding>,
    /// EXT_TIME.
    pub time: Option<TimeExtension>,
    /// EXT_FTI: transmission information of the object.
    pub fti: Option<Oti>,
    /// EXT_AUTH of a group key. Its tag is zero until the datagram is complete and
    /// [sealed](crate::SealedDatagram::seal).
    pub seal: Option<SealField>,
}

/// Reason why a header cannot be emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Identifiers that no choice of the flags S, O and H can hold. A TSI has at most 48 bits, or
    /// 32 without a TOI; a TOI has at most 112.
    #[error("no header has room for TSI {tsi:?} and TOI {toi:?}")]
    Ids {
        /// Session identifier.
        tsi: Tsi,
        /// Object identifier.
        toi: Option<Toi>,
    },
    /// An FDT instance id of more than 20 bits, or a FLUTE version of more than 4.
    #[error("EXT_FDT has no room for version {} and instance {}", .0.version, .0.instance_id)]
    Fdt(FdtExtension),
    /// Transmission information that does not fit EXT_FTI.
    #[error(transparent)]
    Fti(#[from] FtiError),
}

impl HeaderFields {
    /// Fields of a packet of an object without flags and extensions, with codepoint and CCI 0.
    pub fn new(tsi: Tsi, toi: Option<Toi>) -> Self {
        Self { tsi, toi, ..Self::default() }
    }

    /// Checks that every value fits its field. A sender does this once, when it is configured.
    ///
    /// # Errors
    /// [`HeaderError`] names the value that does not fit.
    pub fn check(&self) -> Result<(), HeaderError> {
        self.choose_widths()?;
        if let Some(fdt) = self.fdt
            && !fdt.fits()
        {
            return Err(HeaderError::Fdt(fdt));
        }
        if let Some(oti) = &self.fti {
            fti::check(oti)?;
        }
        Ok(())
    }

    /// Appends the header to `out`. Payload id and symbol follow it.
    ///
    /// # Panics
    /// If [`HeaderFields::check`] fails, because a wrong header must not be sent.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let widths = match self.check().and_then(|()| self.choose_widths()) {
            Ok(widths) => widths,
            Err(error) => unreachable!("{error}"),
        };
        let start = out.len();
        let flags = VERSION << 12
            | u16::from(self.cci.words().saturating_sub(1)) << 10
            | widths.s << 7
            | widths.o << 5
            | widths.h << 4
            | if self.close_session { CLOSE_SESSION } else { 0 }
            | if self.close_object { CLOSE_OBJECT } else { 0 };
        out.extend(flags.to_be_bytes());
        let header_length_at = out.len();
        out.extend([0, self.codepoint]);
        put_uint(self.cci.value(), word_bytes(self.cci.words()), out);
        put_uint(self.tsi.0.into(), widths.tsi_size(), out);
        put_uint(self.toi.unwrap_or_default().0, widths.toi_size(), out);
        if let Some(fdt) = self.fdt {
            extension::emit_fdt(fdt, out);
        }
        if let Some(encoding) = self.content_encoding {
            extension::emit_cenc(encoding, out);
        }
        if let Some(time) = self.time {
            extension::emit_time(time, out);
        }
        if let Some(oti) = &self.fti {
            fti::emit(oti, out);
        }
        if let Some(seal) = &self.seal {
            seal::emit(seal, out);
        }
        // At most 36 words: 1, CCI 4, TSI and TOI 5, extensions 1, 1, 5, 11 and 9.
        let words = out.len().saturating_sub(start) / 4;
        if let Some(header_length) = out.get_mut(header_length_at) {
            *header_length = words as u8;
        }
    }

    fn choose_widths(&self) -> Result<Widths, HeaderError> {
        let Self { tsi, toi, .. } = *self;
        let fixed = Widths { s: 1, o: toi.is_some().into(), h: 0 };
        if self.widths == IdWidths::Fixed32 && fixed.hold(tsi, toi) {
            return Ok(fixed);
        }
        Widths::narrowest(tsi, toi).ok_or(HeaderError::Ids { tsi, toi })
    }
}

/// A choice of the flags S, O and H: numbers of 1, 2 and 1 bits.
#[derive(Clone, Copy)]
struct Widths {
    s: u16,
    o: u16,
    h: u16,
}

impl Widths {
    /// Size of the TSI in bytes: `4 s + 2 h`.
    fn tsi_size(self) -> usize {
        usize::from(self.s << 2 | self.h << 1)
    }

    /// Size of the TOI in bytes: `4 o + 2 h`.
    fn toi_size(self) -> usize {
        usize::from(self.o << 2 | self.h << 1)
    }

    /// True if both values fit, the TSI has at least 16 bits (ALC requires a TSI), and a TOI field
    /// exists exactly if there is a TOI.
    fn hold(self, tsi: Tsi, toi: Option<Toi>) -> bool {
        let toi_fits = match toi {
            Some(toi) => self.toi_size() > 0 && toi.0 >> (self.toi_size() << 3) == 0,
            None => self.toi_size() == 0,
        };
        self.tsi_size() > 0 && u128::from(tsi.0) >> (self.tsi_size() << 3) == 0 && toi_fits
    }

    fn narrowest(tsi: Tsi, toi: Option<Toi>) -> Option<Self> {
        let choices = (0..16).map(|flags| Self { h: flags >> 3, s: flags >> 2 & 1, o: flags & 3 });
        choices
            .filter(|choice| choice.hold(tsi, toi))
            .min_by_key(|choice| choice.tsi_size().saturating_add(choice.toi_size()))
    }
}
