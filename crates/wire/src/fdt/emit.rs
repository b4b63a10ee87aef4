//! The emitter of FDT instances, in the form of RFC 6726 (FLUTE version 2).

use super::{Fdt, FdtFile};
use crate::instance;
use data_encoding::BASE64;
use fontana_fec::FecScheme;
use std::fmt::Display;

impl Fdt {
    /// The XML of this instance.
    ///
    /// Characters that XML cannot represent (most control characters) are replaced by U+FFFD. A
    /// Content-Location made by [`emit_content_location`](crate::emit_content_location) has none.
    pub fn emit(&self) -> Vec<u8> {
        let mut xml = Element::new(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <FDT-Instance xmlns=\"urn:ietf:params:xml:ns:fdt\"",
        );
        xml.attribute("Expires", self.expires.0);
        if self.complete {
            xml.attribute("Complete", true);
        }
        xml.0.push('>');
        for file in &self.files {
            emit_file(file, &mut xml);
        }
        xml.0.push_str("\n</FDT-Instance>\n");
        xml.0.into_bytes()
    }
}

fn emit_file(file: &FdtFile, xml: &mut Element) {
    xml.0.push_str("\n<File");
    xml.attribute("TOI", file.toi);
    xml.attribute("Content-Location", &file.content_location);
    xml.optional("Content-Length", file.content_length);
    xml.optional(
        "Transfer-Length",
        file.oti.map(|oti| oti.transfer_length).or(file.transfer_length),
    );
    xml.optional("Content-Type", file.content_type.as_ref());
    xml.optional("Content-Encoding", file.content_encoding.as_ref());
    xml.optional("Content-MD5", file.content_md5.map(|md5| BASE64.encode(&md5)));
    let encoding_id = file.oti.map(|oti| oti.scheme.encoding_id()).or(file.fec_encoding_id);
    xml.optional("FEC-OTI-FEC-Encoding-ID", encoding_id);
    if let Some(oti) = file.oti {
        xml.attribute("FEC-OTI-Encoding-Symbol-Length", oti.symbol_size);
        xml.optional("FEC-OTI-FEC-Instance-ID", instance::id_of(oti.scheme));
        match oti.scheme {
            FecScheme::NoCode { max_source_block_length } => {
                xml.attribute("FEC-OTI-Maximum-Source-Block-Length", max_source_block_length);
            }
            FecScheme::Tornado { max_source_block_length, .. }
            | FecScheme::Lt { max_source_block_length, .. } => {
                xml.attribute("FEC-OTI-Maximum-Source-Block-Length", max_source_block_length);
                let mut info = Vec::new();
                instance::emit(oti.scheme, &mut info);
                xml.attribute("FEC-OTI-Scheme-Specific-Info", BASE64.encode(&info));
            }
            FecScheme::RaptorQ { source_blocks, sub_blocks, alignment } => {
                let [n0, n1] = sub_blocks.to_be_bytes();
                let info = BASE64.encode(&[source_blocks, n0, n1, alignment]);
                xml.attribute("FEC-OTI-Scheme-Specific-Info", info);
            }
            FecScheme::ReedSolomon { max_source_block_length, max_encoding_symbols, .. } => {
                xml.attribute("FEC-OTI-Maximum-Source-Block-Length", max_source_block_length);
                xml.attribute("FEC-OTI-Max-Number-of-Encoding-Symbols", max_encoding_symbols);
            }
        }
    }
    xml.0.push_str("/>");
}

/// XML text that ends inside a start tag.
struct Element(String);

impl Element {
    fn new(start: &str) -> Self {
        Self(start.to_owned())
    }

    fn optional(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.attribute(name, value);
        }
    }

    fn attribute(&mut self, name: &str, value: impl Display) {
        self.0.extend([" ", name, "=\""]);
        for c in value.to_string().chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                // A parser would read these characters as blanks if they were not escaped.
                '\t' => self.0.push_str("&#9;"),
                '\n' => self.0.push_str("&#10;"),
                '\r' => self.0.push_str("&#13;"),
                // Not characters of XML 1.0 (section 2.2).
                '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => self.0.push('\u{fffd}'),
                c => self.0.push(c),
            }
        }
        self.0.push('"');
    }
}
