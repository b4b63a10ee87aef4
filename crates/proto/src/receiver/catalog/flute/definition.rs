//! What tables and packets say of a file, and whether they contradict each other.

use crate::receiver::sessions::InBand;
use fontana_fec::Oti;
use fontana_wire::{FdtContentEncoding, FdtFile, FdtMd5};
use std::sync::Arc;

/// The definition of a file.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    /// What tables say.
    pub(super) file: Arc<FdtFile>,
    /// What EXT_FTI in its packets says.
    pub(super) fti: Option<Oti>,
    /// The number of the table that has said it last.
    pub(super) instance: u32,
    /// When the last of these tables expires, in unix seconds.
    pub(super) expires: u64,
}

/// Whether two values are there, and differ.
fn differ<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a != b)
}

/// The MD5 of a file, if it is one.
fn md5(file: &FdtFile) -> Option<&[u8; 16]> {
    match &file.content_md5 {
        Some(FdtMd5::Digest(md5)) => Some(md5),
        Some(FdtMd5::Invalid(_)) | None => None,
    }
}

impl Definition {
    /// Whether it is of another file: an attribute that both have differs.
    pub(super) fn contradicts(&self, other: &Self) -> bool {
        let (a, b) = (&*self.file, &*other.file);
        a.content_location != b.content_location
            || differ(a.content_length.as_ref(), b.content_length.as_ref())
            || differ(a.transfer_length.as_ref(), b.transfer_length.as_ref())
            || differ(a.content_encoding.as_ref(), b.content_encoding.as_ref())
            || differ(a.fec_encoding_id.as_ref(), b.fec_encoding_id.as_ref())
            || differ(a.oti.as_ref(), b.oti.as_ref())
            || differ(md5(a), md5(b))
            || differ(self.fti.as_ref(), other.fti.as_ref())
    }

    /// Adds what another definition of the same file has beyond it. Its table is the later one.
    pub(super) fn merge(&mut self, other: Self) {
        self.instance = other.instance;
        self.expires = self.expires.max(other.expires);
        self.fti = self.fti.or(other.fti);
        let (own, other) = (&*self.file, &*other.file);
        let adds = own.content_length.is_none() && other.content_length.is_some()
            || own.transfer_length.is_none() && other.transfer_length.is_some()
            || own.content_encoding.is_none() && other.content_encoding.is_some()
            || own.fec_encoding_id.is_none() && other.fec_encoding_id.is_some()
            || own.oti.is_none() && other.oti.is_some()
            || md5(own).is_none() && md5(other).is_some();
        if !adds {
            return;
        }
        let content_md5 = if md5(own).is_some() { &own.content_md5 } else { &other.content_md5 };
        let content_encoding = own.content_encoding.as_ref().or(other.content_encoding.as_ref());
        self.file = Arc::new(FdtFile {
            content_length: own.content_length.or(other.content_length),
            transfer_length: own.transfer_length.or(other.transfer_length),
            content_encoding: content_encoding.cloned(),
            fec_encoding_id: own.fec_encoding_id.or(other.fec_encoding_id),
            oti: own.oti.or(other.oti),
            content_md5: content_md5.clone(),
            ..FdtFile::clone(own)
        });
    }

    /// Adds what headers of its packets say.
    pub(super) fn add(&mut self, InBand { fti, encoding }: InBand) {
        self.fti = self.fti.or(fti);
        if let Some(encoding) = encoding.filter(|_| self.file.content_encoding.is_none()) {
            let content_encoding = Some(FdtContentEncoding::Known(encoding));
            self.file = Arc::new(FdtFile { content_encoding, ..FdtFile::clone(&self.file) });
        }
    }

    /// Whether wrong bytes are noticed: those of two files, for example.
    pub(super) fn has_md5(&self) -> bool {
        md5(&self.file).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::FecScheme;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_wire::ContentEncoding;

    fn oti(length: u64) -> Oti {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
        Oti { transfer_length: length, symbol_size: 1, scheme }
    }

    fn of(file: FdtFile) -> Definition {
        let file = FdtFile { content_location: format!("a{}", file.content_location), ..file };
        Definition { file: Arc::new(file), fti: None, instance: 1, expires: 10 }
    }

    /// Each attribute of a file, with one of two values.
    fn attributes(second: bool) -> [Definition; 7] {
        let n = u64::from(second);
        let plain = FdtFile::default;
        let encoding = if second { ContentEncoding::Gzip } else { ContentEncoding::Zlib };
        [
            of(FdtFile { content_length: Some(n), ..plain() }),
            of(FdtFile { transfer_length: Some(n), ..plain() }),
            of(FdtFile { content_encoding: Some(FdtContentEncoding::Known(encoding)), ..plain() }),
            of(FdtFile { fec_encoding_id: Some(n as u8), ..plain() }),
            of(FdtFile { oti: Some(oti(n)), ..plain() }),
            of(FdtFile { content_md5: Some(FdtMd5::Digest([n as u8; 16])), ..plain() }),
            Definition { fti: Some(oti(n)), ..of(plain()) },
        ]
    }

    #[test]
    fn definitions_contradict_each_other_in_attributes_that_both_have() {
        let (first, second) = (attributes(false), attributes(true));
        for (at, one) in first.iter().enumerate() {
            assert!(!one.contradicts(one) && one.contradicts(&second[at]), "{one:?}");
            for other in second.iter().enumerate().filter_map(|(i, o)| (i != at).then_some(o)) {
                assert!(!one.contradicts(other), "{one:?} and {other:?}");
            }
        }
        let named = of(FdtFile { content_location: "b".to_owned(), ..FdtFile::default() });
        assert!(named.contradicts(&first[0]));
        let invalid = FdtMd5::Invalid("none".to_owned());
        let invalid = of(FdtFile { content_md5: Some(invalid), ..FdtFile::default() });
        assert!(!invalid.contradicts(&first[5]) && !first[5].contradicts(&invalid));
    }

    #[test]
    fn a_merged_definition_has_the_attributes_of_both() {
        let mut merged = of(FdtFile::default());
        for one in attributes(false) {
            merged.merge(Definition { instance: 7, expires: 5, ..one });
        }
        assert_eq!((merged.instance, merged.expires), (7, 10));
        for (one, other) in attributes(false).iter().zip(&attributes(true)) {
            assert!(!merged.contradicts(one) && merged.contradicts(other), "{other:?}");
        }
    }
}
