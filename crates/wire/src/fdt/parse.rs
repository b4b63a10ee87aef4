//! The parser of FDT instances of any dialect. It identifies elements and attributes by local name
//! under any namespace, and skips unknown ones. Products use the namespaces of RFC 6726, of 3GPP,
//! of an example in RFC 3926, or none.

use super::{
    Fdt, FdtContentEncoding, FdtError, FdtFile, FdtLimits, FdtMd5, FdtReading, InvalidEntry,
};
use crate::content::{ContentEncoding, DecodeLimits, decode_bounded};
use crate::id::Toi;
use crate::ntp::NtpSeconds;
use data_encoding::BASE64;
use fontana_fec::{EncodingId, FecScheme, Information, Oti, SchemeParameters};
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::QName;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::str::FromStr;

impl Fdt {
    /// Parses an FDT instance within the default [`FdtLimits`].
    ///
    /// # Errors
    /// [`FdtError`]. Unknown elements and attributes are skipped. An invalid known one makes the
    /// whole instance invalid; [`Fdt::read`] is more lenient.
    pub fn parse(xml: &[u8]) -> Result<Self, FdtError> {
        Self::parse_with(xml, &FdtLimits::default())
    }

    /// Parses an FDT instance from the bytes of its object, encoded as EXT_CENC says
    /// ([`Extensions::cenc`](crate::Extensions::cenc)).
    ///
    /// # Errors
    /// As [`Fdt::parse`]; [`FdtError::ContentEncoding`] if the data cannot be decoded within the
    /// limits.
    pub fn parse_encoded(
        encoding: ContentEncoding,
        bytes: &[u8],
        limits: &FdtLimits,
    ) -> Result<Self, FdtError> {
        strict(Self::read(encoding, bytes, limits)?)
    }

    /// Reads an FDT instance as [`Fdt::parse_encoded`] does, but leaves out invalid entries instead
    /// of refusing the instance. Of several entries with one TOI the first one holds.
    ///
    /// # Errors
    /// As [`Fdt::parse_encoded`], but for an attribute of a file that is missing or has an invalid
    /// value, and for two files with one TOI.
    pub fn read(
        encoding: ContentEncoding,
        bytes: &[u8],
        limits: &FdtLimits,
    ) -> Result<FdtReading, FdtError> {
        let mut xml = Vec::new();
        let output_bytes = limits.decoded_bytes as u64;
        let decoding = DecodeLimits { output_bytes, ratio: limits.decoded_ratio };
        decode_bounded(encoding, bytes, &mut xml, &decoding)
            .map_err(|error| FdtError::ContentEncoding(error.to_string()))?;
        read_xml(&xml, limits)
    }

    /// Parses an FDT instance within the given limits.
    ///
    /// # Errors
    /// As [`Fdt::parse`].
    pub fn parse_with(xml: &[u8], limits: &FdtLimits) -> Result<Self, FdtError> {
        strict(read_xml(xml, limits)?)
    }
}

/// The instance, if all of its entries are valid.
fn strict(FdtReading { fdt, invalid }: FdtReading) -> Result<Fdt, FdtError> {
    invalid.into_iter().next().map_or(Ok(fdt), |entry| Err(entry.error))
}

fn read_xml(xml: &[u8], limits: &FdtLimits) -> Result<FdtReading, FdtError> {
    if xml.len() > limits.decoded_bytes {
        return Err(FdtError::Limit { what: "bytes", limit: limits.decoded_bytes });
    }
    let xml = str::from_utf8(xml).map_err(|_| FdtError::Encoding)?;
    let mut reader = Reader::from_str(xml);
    let mut parser = Parser {
        limits,
        position: 0,
        root: None,
        read: FdtReading::default(),
        seen: BTreeSet::new(),
    };
    // Number of elements that are open around the next event.
    let mut depth = 0_usize;
    loop {
        let event = reader.read_event().map_err(|error| FdtError::Xml {
            position: reader.error_position(),
            reason: excerpt(&error.to_string()),
        })?;
        parser.position = reader.buffer_position();
        match event {
            Event::Start(element) => {
                parser.element(&element, depth)?;
                depth = depth.saturating_add(1);
                if depth > limits.depth {
                    return Err(FdtError::Limit { what: "nested elements", limit: limits.depth });
                }
            }
            Event::Empty(element) => parser.element(&element, depth)?,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::DocType(_) => return Err(FdtError::DocumentType),
            Event::Eof if depth > 0 => {
                let reason = "it ends too early".to_owned();
                return Err(FdtError::Xml { position: parser.position, reason });
            }
            Event::Eof => break,
            // Text has no meaning in an FDT, and references in it are not resolved.
            Event::Text(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::GeneralRef(_) => {}
        }
    }
    parser.root.ok_or(FdtError::Root)?;
    Ok(parser.read)
}

struct Parser<'l> {
    limits: &'l FdtLimits,
    /// Bytes read so far.
    position: u64,
    /// Attributes of the root element, after it was read.
    root: Option<Attributes>,
    read: FdtReading,
    seen: BTreeSet<Toi>,
}

impl Parser<'_> {
    /// Handles a start tag inside `depth` open elements.
    fn element(&mut self, element: &BytesStart<'_>, depth: usize) -> Result<(), FdtError> {
        match (depth, element.local_name().into_inner()) {
            (0, "FDT-Instance") if self.root.is_none() => {
                let root = self.attributes(element)?;
                let expires = root.expires.ok_or(missing("FDT-Instance", "Expires"))?;
                // Some senders continue to count where NTP wraps in 2036.
                self.read.fdt.expires = NtpSeconds(expires as u32);
                self.read.fdt.complete = root.complete;
                self.root = Some(root);
                Ok(())
            }
            (0, _) => Err(FdtError::Root),
            (1, "File") => match self.attributes(element).and_then(|own| self.file(own)) {
                Err(
                    error @ (FdtError::Missing { .. }
                    | FdtError::Value { .. }
                    | FdtError::RepeatedToi(_)),
                ) => {
                    self.note_invalid(element, error);
                    Ok(())
                }
                result => result,
            },
            _ => Ok(()),
        }
    }

    fn note_invalid(&mut self, element: &BytesStart<'_>, error: FdtError) {
        if self.read.invalid.len() < InvalidEntry::MAX {
            let mut attributes = element.attributes().take(self.limits.attributes).flatten();
            let location = attributes.find(|a| a.key.into_inner() == "Content-Location");
            let content_location = location.map(|location| excerpt(&location.value));
            self.read.invalid.push(InvalidEntry { content_location, error });
        }
    }

    fn attributes(&self, element: &BytesStart<'_>) -> Result<Attributes, FdtError> {
        let mut attributes = Attributes::default();
        // The limit is checked before the check for repetitions, whose cost grows with the number.
        for (index, attribute) in element.attributes().enumerate() {
            if index >= self.limits.attributes {
                return Err(FdtError::Limit { what: "attributes", limit: self.limits.attributes });
            }
            let attribute = attribute.map_err(|error| FdtError::Xml {
                position: self.position,
                reason: excerpt(&error.to_string()),
            })?;
            attributes.set(attribute.key, &attribute.value)?;
        }
        Ok(attributes)
    }

    fn file(&mut self, own: Attributes) -> Result<(), FdtError> {
        if self.read.fdt.files.len() >= self.limits.files {
            return Err(FdtError::Limit { what: "files", limit: self.limits.files });
        }
        let root = self.root.as_ref().ok_or(FdtError::Root)?;
        let toi = own.toi.ok_or(missing("File", "TOI"))?;
        let content_location = own.content_location.ok_or(missing("File", "Content-Location"))?;
        let content_encoding = own.content_encoding.or_else(|| root.content_encoding.clone());
        let is_encoded = !matches!(
            content_encoding,
            None | Some(FdtContentEncoding::Known(ContentEncoding::Null))
        );
        let transfer_length = own.transfer_length.or(own.content_length.filter(|_| !is_encoded));
        let fec = own.fec.or(&root.fec);
        let oti = fec.oti(transfer_length)?;
        if !self.seen.insert(toi) {
            return Err(FdtError::RepeatedToi(toi));
        }
        self.read.fdt.files.push(FdtFile {
            toi,
            content_location,
            content_length: own.content_length,
            transfer_length,
            content_type: own.content_type.or_else(|| root.content_type.clone()),
            content_encoding,
            content_md5: own.content_md5,
            fec_encoding_id: fec.encoding_id,
            oti,
        });
        Ok(())
    }
}

/// The known attributes of `FDT-Instance` and `File`.
#[derive(Default)]
struct Attributes {
    expires: Option<u64>,
    complete: bool,
    toi: Option<Toi>,
    content_location: Option<String>,
    content_length: Option<u64>,
    transfer_length: Option<u64>,
    content_type: Option<String>,
    content_encoding: Option<FdtContentEncoding>,
    content_md5: Option<FdtMd5>,
    fec: FecAttributes,
}

impl Attributes {
    fn set(&mut self, key: QName<'_>, raw: &str) -> Result<(), FdtError> {
        // The FDT's own attributes have no prefix; others belong to extensions.
        let Some(name) = OWN.into_iter().find(|&own| own == key.into_inner()) else {
            return Ok(());
        };
        let invalid = || FdtError::Value { attribute: name, value: excerpt(raw) };
        let value = unescape(raw).map_err(|_| invalid())?;
        // The schema's types ignore white space around numbers.
        let token = value.trim();
        let inherited =
            matches!(name, "Content-Type" | "Content-Encoding" | "FEC-OTI-Scheme-Specific-Info");
        if inherited && value.len() > MAX_INHERITED_SIZE {
            return Err(invalid());
        }
        match name {
            "Expires" => self.expires = Some(number(token).ok_or_else(invalid)?),
            "Complete" => self.complete = boolean(token).ok_or_else(invalid)?,
            "TOI" => {
                let toi = number(token).map(Toi).filter(|&toi| toi != Toi::FDT && toi <= Toi::MAX);
                self.toi = Some(toi.ok_or_else(invalid)?);
            }
            "Content-Location" => self.content_location = Some(value.into_owned()),
            "Content-Length" => self.content_length = Some(number(token).ok_or_else(invalid)?),
            "Transfer-Length" | "FEC-OTI-Transfer-Length" => {
                let length = number(token).ok_or_else(invalid)?;
                if self.transfer_length.is_some_and(|other| other != length) {
                    return Err(invalid());
                }
                self.transfer_length = Some(length);
            }
            "Content-Type" => self.content_type = Some(value.into_owned()),
            "Content-Encoding" => {
                self.content_encoding = Some(match ContentEncoding::from_name(token) {
                    Some(encoding) => FdtContentEncoding::Known(encoding),
                    None => FdtContentEncoding::Unknown(token.to_owned()),
                });
            }
            "Content-MD5" => {
                let md5 = BASE64.decode(token.as_bytes()).ok().and_then(|md5| md5.try_into().ok());
                let invalid = || FdtMd5::Invalid(excerpt(token));
                self.content_md5 = Some(md5.map_or_else(invalid, FdtMd5::Digest));
            }
            "FEC-OTI-FEC-Encoding-ID" => {
                self.fec.encoding_id = Some(number(token).ok_or_else(invalid)?);
            }
            "FEC-OTI-Encoding-Symbol-Length" => {
                self.fec.symbol_size = Some(number(token).ok_or_else(invalid)?);
            }
            "FEC-OTI-Maximum-Source-Block-Length" => {
                self.fec.max_source_block_length = Some(number(token).ok_or_else(invalid)?);
            }
            "FEC-OTI-Max-Number-of-Encoding-Symbols" => {
                self.fec.max_encoding_symbols = Some(number(token).ok_or_else(invalid)?);
            }
            "FEC-OTI-FEC-Instance-ID" => {
                self.fec.instance_id = Some(number(token).ok_or_else(invalid)?);
            }
            "FEC-OTI-Scheme-Specific-Info" => {
                let info = BASE64.decode(token.as_bytes()).map_err(|_| invalid())?;
                self.fec.scheme_specific_info = Some(info);
            }
            "FEC-OTI-Number-Of-Source-Blocks" => {
                self.fec.source_blocks = Some(number(token).ok_or_else(invalid)?);
            }
            "FEC-OTI-Number-Of-Sub-Blocks" => {
                self.fec.sub_blocks = Some(number(token).ok_or_else(invalid)?);
            }
            "FEC-OTI-Symbol-Alignment-Parameter" => {
                self.fec.alignment = Some(number(token).ok_or_else(invalid)?);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Longest value, in bytes, of an attribute that files inherit from the instance. Each of 100 000
/// files gets a copy. Media types have at most 255 characters (RFC 6838, section 4.2: 127 for type
/// and subtype each); the other values are shorter.
const MAX_INHERITED_SIZE: usize = 255;

/// Names of the known attributes.
const OWN: [&str; 19] = [
    "Expires",
    "Complete",
    "TOI",
    "Content-Location",
    "Content-Length",
    "Transfer-Length",
    // Name in RFC 5510 and RFC 5170; FLUTE has another.
    "FEC-OTI-Transfer-Length",
    "Content-Type",
    "Content-Encoding",
    "Content-MD5",
    "FEC-OTI-FEC-Encoding-ID",
    "FEC-OTI-Encoding-Symbol-Length",
    "FEC-OTI-Maximum-Source-Block-Length",
    "FEC-OTI-Max-Number-of-Encoding-Symbols",
    "FEC-OTI-FEC-Instance-ID",
    "FEC-OTI-Scheme-Specific-Info",
    // Names of 3GPP (TS 26.346, section 7.2.10), which has them instead of the last one.
    "FEC-OTI-Number-Of-Source-Blocks",
    "FEC-OTI-Number-Of-Sub-Blocks",
    "FEC-OTI-Symbol-Alignment-Parameter",
];

/// Transmission information, as far as the attributes give it.
#[derive(Default)]
struct FecAttributes {
    encoding_id: Option<u8>,
    symbol_size: Option<u64>,
    max_source_block_length: Option<u64>,
    max_encoding_symbols: Option<u64>,
    instance_id: Option<u64>,
    scheme_specific_info: Option<Vec<u8>>,
    /// `Z`, `N` and `Al` of Raptor, as 3GPP gives them.
    source_blocks: Option<u16>,
    sub_blocks: Option<u8>,
    alignment: Option<u8>,
}

impl FecAttributes {
    /// The file's attributes, completed by those of the instance.
    fn or(self, instance: &Self) -> Self {
        // A file's numbers replace the information of the instance.
        let has_own_numbers = self.source_blocks.is_some();
        Self {
            encoding_id: self.encoding_id.or(instance.encoding_id),
            symbol_size: self.symbol_size.or(instance.symbol_size),
            max_source_block_length: self
                .max_source_block_length
                .or(instance.max_source_block_length),
            max_encoding_symbols: self.max_encoding_symbols.or(instance.max_encoding_symbols),
            instance_id: self.instance_id.or(instance.instance_id),
            scheme_specific_info: self
                .scheme_specific_info
                .or_else(|| instance.scheme_specific_info.clone().filter(|_| !has_own_numbers)),
            source_blocks: self.source_blocks.or(instance.source_blocks),
            sub_blocks: self.sub_blocks.or(instance.sub_blocks),
            alignment: self.alignment.or(instance.alignment),
        }
    }

    /// The transmission information; `None` if an attribute is missing or the scheme is not
    /// supported.
    fn oti(&self, transfer_length: Option<u64>) -> Result<Option<Oti>, FdtError> {
        let (Some(encoding_id), Some(symbol_size), Some(transfer_length)) =
            (self.encoding_id, self.symbol_size, transfer_length)
        else {
            return Ok(None);
        };
        // Numbers of other schemes may exceed the fields here; they are not checked.
        let Some(parameters) = self.parameters(EncodingId(encoding_id)).transpose()? else {
            return Ok(None);
        };
        let scheme = FecScheme::from_parameters(&parameters)
            .map_err(|_| information(parameters.information.bytes()))?;
        let symbol_size = narrow("FEC-OTI-Encoding-Symbol-Length", symbol_size)?;
        Ok(Some(Oti { transfer_length, symbol_size, scheme }))
    }

    /// The scheme-specific information. 3GPP gives that of Raptor in attributes of its own.
    fn information(&self, encoding_id: EncodingId) -> Option<Cow<'_, [u8]>> {
        if let Some(info) = &self.scheme_specific_info {
            return Some(Cow::Borrowed(info));
        }
        let (source_blocks, sub_blocks, alignment) =
            (self.source_blocks?, self.sub_blocks?, self.alignment?);
        let [z0, z1] = source_blocks.to_be_bytes();
        (encoding_id == EncodingId::RAPTOR).then(|| vec![z0, z1, sub_blocks, alignment].into())
    }

    /// The parameters of the scheme; `None` if an attribute is missing or the code is not
    /// supported.
    fn parameters(&self, encoding_id: EncodingId) -> Option<Result<SchemeParameters, FdtError>> {
        const LENGTH: &str = "FEC-OTI-Maximum-Source-Block-Length";
        let instance_id = match encoding_id {
            EncodingId::EXPANDABLE => Some(u16::try_from(self.instance_id?).ok()?),
            // Without an instance id, the registered code (RFC 5510, section 7).
            EncodingId::SMALL_BLOCK => Some(u16::try_from(self.instance_id.unwrap_or(0)).ok()?),
            _ => None,
        };
        let information_size = FecScheme::information_size(encoding_id, instance_id).ok()?;
        let mut parameters = SchemeParameters::new(encoding_id, instance_id);
        match encoding_id {
            EncodingId::RAPTOR | EncodingId::RAPTORQ => {}
            EncodingId::RFC_5510 | EncodingId::SMALL_BLOCK => {
                let (length, n) = (self.max_source_block_length?, self.max_encoding_symbols?);
                let numbers = narrow::<u16>(LENGTH, length).and_then(|length| {
                    Ok((length, narrow("FEC-OTI-Max-Number-of-Encoding-Symbols", n)?))
                });
                match numbers {
                    Ok((length, n)) => {
                        parameters.max_source_block_length = Some(length.into());
                        parameters.max_encoding_symbols = Some(n);
                    }
                    Err(error) => return Some(Err(error)),
                }
            }
            _ => {
                let length = self.max_source_block_length?;
                if information_size > 0 {
                    self.scheme_specific_info.as_ref()?;
                }
                match narrow(LENGTH, length) {
                    Ok(length) => parameters.max_source_block_length = Some(length),
                    Err(error) => return Some(Err(error)),
                }
            }
        }
        if information_size > 0 {
            let info = self.information(encoding_id)?;
            let info = info.as_ref();
            match Information::new(info).filter(|_| info.len() == information_size) {
                Some(info) => parameters.information = info,
                None => return Some(Err(information(info))),
            }
        }
        Some(Ok(parameters))
    }
}

/// The error for invalid scheme-specific information.
fn information(info: &[u8]) -> FdtError {
    let attribute = "FEC-OTI-Scheme-Specific-Info";
    FdtError::Value { attribute, value: excerpt(&BASE64.encode(info)) }
}

/// The number in the type of its field.
fn narrow<T: TryFrom<u64>>(attribute: &'static str, value: u64) -> Result<T, FdtError> {
    T::try_from(value).map_err(|_| FdtError::Value { attribute, value: value.to_string() })
}

/// Parses decimal digits only: no sign, no blank.
fn number<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Parses a boolean of XML Schema.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// The beginning of a received text, truncated for display.
fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}

const fn missing(element: &'static str, attribute: &'static str) -> FdtError {
    FdtError::Missing { element, attribute }
}
