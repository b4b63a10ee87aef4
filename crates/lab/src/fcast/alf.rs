//! `fc.alf`: what it costs that fragments of a file describe themselves (sections 4.1 and 6.1).

use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use fontana_wire::{CompoundHeader, CompoundMetadata, InternetChecksum, Slice};
use serde::{Deserialize, Serialize};

/// "The default 64 kilobyte fragment size", and the file of figure 8.
const FRAGMENT: u32 = 65_536;
const FILE: u32 = 5_623_021;
const NAME: &str = "tmp/big_file.ps";

/// With the fields of figure 8, and with the SHA-256 that `fontana send --fcast` adds.
const FIGURE_8: &str = "as in figure 8";
const DIGEST: &str = "with SHA-256";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fc.alf",
    paper: "FCAST, sections 4.1 and 6.1",
    what: "The headers of all fragments of the file of figure 8, 5 623 021 bytes in fragments of 64 kB, as \
           RFC 6968 has them in place of the paper's trailers, written by the code of the product: with \
           the fields of figure 8, and with the SHA-256 of the data that the product adds.",
    sweep: &SweepOf { name: "fc.alf", kind: Kind::Counted, cases: |_| 1, run },
    claims: || {
        let of = |fields: &'static str, number: fn(&Headers) -> f64| {
            move |rows: &[Headers]| rows.number(|row| row.fields == fields, number)
        };
        vec![
            Claim::printed(
                "figure 8",
                "% that headers add to the file, with the fields of figure 8",
                quote("a 0.2% overhead", "section 6.1"),
                Target::Equal(0.2),
                0.05,
                of(FIGURE_8, |row| row.percent),
            ),
            Claim::printed(
                "bytes",
                "bytes of a header with the fields of figure 8, on average",
                quote("typically around 140 to 170 bytes long", "section 6.1"),
                Target::Equal(155.0),
                15.0,
                of(FIGURE_8, |row| row.bytes),
            ),
            Claim::own(
                "digest",
                "% that the headers of the product add",
                Target::AtMost(0.4),
                0.0,
                of(DIGEST, |row| row.percent),
            ),
        ]
    },
    exhibits: |_| Vec::new(),
};

/// The headers of all fragments.
#[derive(Serialize, Deserialize)]
struct Headers {
    fields: String,
    fragments: u32,
    /// Of one, on average.
    bytes: f64,
    /// Of the file.
    percent: f64,
}

fn run(_: &Case) -> Vec<Headers> {
    let count = FILE.div_ceil(FRAGMENT);
    let header = |index: u32, sha256: Option<[u8; 32]>| {
        let offset = index * FRAGMENT;
        let metadata = CompoundMetadata {
            content_location: Some(NAME.into()),
            content_length: Some(FILE.into()),
            sha256,
            slice: Some(Slice { count, index, offset: offset.into() }),
            ..CompoundMetadata::default()
        };
        let data = FRAGMENT.min(FILE - offset);
        CompoundHeader::Object(metadata).emit(InternetChecksum::default(), data.into()).len()
    };
    [(FIGURE_8, None), (DIGEST, Some([0; 32]))]
        .map(|(fields, sha256)| {
            let all = (0..count).map(|index| header(index, sha256) as f64).sum::<f64>();
            Headers {
                fields: fields.into(),
                fragments: count,
                bytes: all / f64::from(count),
                percent: 100.0 * all / f64::from(FILE),
            }
        })
        .into()
}
