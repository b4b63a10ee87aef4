//! The transmission schedule that a session announces: a record of its head.

use crate::bytes::Reader;
use crate::records::HeadRecords;
use std::fmt;

/// Type of the record.
const RECORD: u8 = 1;

/// A transmission schedule other than even progress, as a session announces it. Receivers do not
/// depend on it: it is for people, and for receivers that choose settings by it.
///
/// ```text
/// 1  kind: 1 cumulative, 2 random, 3 FCAST
/// 1  symbols of each layer: 1 all, 2 a segment       } of FCAST
/// 4  objects: 0 one after the other, 1 mixed, l > 1: one symbol in l exchanged }
/// 1  stretch factor n/k                              }
/// 1  number of layers that first send all source symbols }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnouncedSchedule {
    /// Over cumulative layers, each symbol once before any repetition.
    Cumulative,
    /// Independent random blocks.
    Random,
    /// An order of FCAST (INRIA RR-4411, sections 4 and 7).
    Fcast {
        /// Symbols of each layer (section 4.3).
        layers: LayerSymbols,
        /// Objects: `m/seq` is 0, `m/rand` 1, `m/p_rand(l)` l.
        one_in: u32,
        /// n/k.
        stretch_factor: u8,
        /// Number of the lowest layers that first send all source symbols (section 7).
        anticipated_layers: u8,
    },
}

/// Symbols of each layer of an order of FCAST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerSymbols {
    /// Organization 1: all of them.
    All,
    /// Organization 2: a segment of them.
    Segment,
}

impl AnnouncedSchedule {
    /// The records of a head that announces only this.
    pub fn records(self) -> HeadRecords {
        HeadRecords::new([(RECORD, self.emit())]).unwrap_or_default()
    }

    /// The schedule that records announce; `None` if they have none, or one that is not known.
    pub fn of(records: &HeadRecords) -> Option<Self> {
        let mut reader = Reader::new(records.get(RECORD)?);
        let schedule = match reader.u8()? {
            1 => Self::Cumulative,
            2 => Self::Random,
            3 => Self::Fcast {
                layers: match reader.u8()? {
                    1 => LayerSymbols::All,
                    2 => LayerSymbols::Segment,
                    _ => return None,
                },
                one_in: reader.u32()?,
                stretch_factor: reader.u8()?,
                anticipated_layers: reader.u8()?,
            },
            _ => return None,
        };
        reader.rest().is_empty().then_some(schedule)
    }

    fn emit(self) -> Vec<u8> {
        match self {
            Self::Cumulative => vec![1],
            Self::Random => vec![2],
            Self::Fcast { layers, one_in, stretch_factor, anticipated_layers } => {
                let mut value = vec![3];
                value.push(match layers {
                    LayerSymbols::All => 1,
                    LayerSymbols::Segment => 2,
                });
                value.extend(one_in.to_be_bytes());
                value.extend([stretch_factor, anticipated_layers]);
                value
            }
        }
    }
}

impl fmt::Display for AnnouncedSchedule {
    /// As `fontana send --order` takes it, with `,anticipated:N` after an order of FCAST.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Cumulative => f.write_str("cumulative"),
            Self::Random => f.write_str("random"),
            Self::Fcast { layers, one_in, anticipated_layers, .. } => {
                match one_in {
                    0 => f.write_str("fcast:seq")?,
                    1 => f.write_str("fcast:rand")?,
                    l => write!(f, "fcast:p_rand{l}")?,
                }
                f.write_str(match layers {
                    LayerSymbols::All => "/org_1",
                    LayerSymbols::Segment => "/org_2",
                })?;
                match anticipated_layers {
                    0 => Ok(()),
                    count => write!(f, ",anticipated:{count}"),
                }
            }
        }
    }
}
