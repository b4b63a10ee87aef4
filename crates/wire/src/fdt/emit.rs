//! The emitter of FDT instances. The versions of FLUTE differ in the namespace.

use super::{Fdt, FdtFile, FdtMd5};
use crate::extension::FluteVersion;
use data_encoding::BASE64;
use std::fmt::Display;

impl Fdt {
    /// The XML of this instance, for a session of this version.
    ///
    /// Characters that XML cannot represent (most control characters) are replaced by U+FFFD. A
    /// Content-Location made by [`emit_content_location`](crate::emit_content_location) has none.
    pub fn emit(&self, version: FluteVersion) -> Vec<u8> {
        let mut xml = Element::new(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <FDT-Instance",
        );
        xml.attribute("xmlns", version.namespace());
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
    xml.optional(
        "Content-MD5",
        file.content_md5.as_ref().map(|md5| match md5 {
            FdtMd5::Digest(digest) => BASE64.encode(digest),
            FdtMd5::Invalid(text) => text.clone(),
        }),
    );
    let encoding_id =
        file.oti.map(|oti| oti.scheme.profile().encoding_id.0).or(file.fec_encoding_id);
    xml.optional("FEC-OTI-FEC-Encoding-ID", encoding_id);
    if let Some(oti) = file.oti {
        xml.attribute("FEC-OTI-Encoding-Symbol-Length", oti.symbol_size);
        let parameters = oti.scheme.parameters();
        xml.optional("FEC-OTI-FEC-Instance-ID", parameters.instance_id);
        let length = parameters.max_source_block_length;
        xml.optional("FEC-OTI-Maximum-Source-Block-Length", length);
        let n = parameters.max_encoding_symbols;
        xml.optional("FEC-OTI-Max-Number-of-Encoding-Symbols", n);
        let information = parameters.information.bytes();
        if !information.is_empty() {
            xml.attribute("FEC-OTI-Scheme-Specific-Info", BASE64.encode(information));
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
