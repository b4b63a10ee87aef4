//! The FEC schemes: the list of codes.
//!
//! A code is its page in [`codes`](crate::codes) and three lines here: a variant, an arm of
//! `FecScheme::code`, and a parser.

use crate::code::{BlockProfile, Code, CodeProfile};
use crate::codes::lt::{self, Lt};
use crate::codes::no_code::{self, NoCode};
use crate::codes::raptor::{self, Raptor};
use crate::codes::raptorq::{self, RaptorQ};
use crate::codes::reed_solomon::{self, ReedSolomon};
use crate::codes::tornado::{self, Tornado};
use crate::decode::IdDecoder;
use crate::ids::EncodingId;
use crate::limits::{BlockLengthError, ObjectLimits, OtiError};
use crate::parameters::{CodeError, Format, SchemeParameters};
use crate::plan::{Plan, PlanCache};
use alloc::boxed::Box;
use alloc::sync::Arc;

/// The code of an object, and the parameters of that code.
///
/// The set is closed: it is the list of codes that this workspace supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FecScheme {
    /// Compact No-Code, FEC Encoding ID 0 (RFC 5445, section 3).
    NoCode(NoCode),
    /// Raptor, FEC Encoding ID 1 (RFC 5053).
    Raptor(Raptor),
    /// RaptorQ, FEC Encoding ID 6 (RFC 6330).
    RaptorQ(RaptorQ),
    /// Tornado, FEC Encoding ID 128, FEC Instance ID 1.
    Tornado(Tornado),
    /// LT, FEC Encoding ID 128, FEC Instance ID 2.
    Lt(Lt),
    /// Reed-Solomon, FEC Encoding IDs 5 (RFC 5510) and 129.
    ReedSolomon(ReedSolomon),
}

type Parser = fn(&SchemeParameters) -> Result<FecScheme, CodeError>;

/// The ids of each code in protocols, and its parser.
const PARSERS: [(Format, Parser); 7] = [
    (no_code::FORMAT, |p| NoCode::parse(p).map(FecScheme::NoCode)),
    (raptor::FORMAT, |p| Raptor::parse(p).map(FecScheme::Raptor)),
    (raptorq::FORMAT, |p| RaptorQ::parse(p).map(FecScheme::RaptorQ)),
    (tornado::FORMAT, |p| Tornado::parse(p).map(FecScheme::Tornado)),
    (lt::FORMAT, |p| Lt::parse(p).map(FecScheme::Lt)),
    (reed_solomon::RFC_5510_FORMAT, |p| ReedSolomon::parse(p).map(FecScheme::ReedSolomon)),
    (reed_solomon::SMALL_BLOCK_FORMAT, |p| ReedSolomon::parse(p).map(FecScheme::ReedSolomon)),
];

impl FecScheme {
    /// The implementation of the code. This is the only match over the codes.
    fn code(&self) -> &dyn Code {
        match self {
            Self::NoCode(code) => code,
            Self::Raptor(code) => code,
            Self::RaptorQ(code) => code,
            Self::Tornado(code) => code,
            Self::Lt(code) => code,
            Self::ReedSolomon(code) => code,
        }
    }

    /// The facts that are the same for all blocks.
    pub fn profile(&self) -> CodeProfile {
        self.code().profile()
    }

    /// The facts about blocks of `source_symbols`, even if the code has no such blocks.
    pub fn block_profile(&self, source_symbols: u32) -> BlockProfile {
        self.code().block_profile(source_symbols)
    }

    pub(crate) fn limits(&self, symbol_size: u16) -> Result<ObjectLimits, OtiError> {
        self.code().limits(symbol_size)
    }

    /// An empty decoder for a block of `source_symbols`. For many blocks [`PlanCache::decoder`] is
    /// faster.
    ///
    /// # Errors
    /// [`BlockLengthError`] if the code has no such block.
    pub fn decoder(&self, source_symbols: u32) -> Result<Box<dyn IdDecoder>, BlockLengthError> {
        self.check_block_length(source_symbols)?;
        Ok(self.code().decoder(source_symbols, None))
    }

    /// The plan of a block of `source_symbols` that are all available, for encoders.
    ///
    /// The expensive part is computed at the first execution. [`PlanCache::source_plan`] shares it
    /// among blocks.
    ///
    /// # Errors
    /// [`BlockLengthError`] if the code has no such block.
    pub fn source_plan(&self, source_symbols: u32) -> Result<Arc<Plan>, BlockLengthError> {
        self.check_block_length(source_symbols)?;
        Ok(self.code().source_plan(source_symbols, None))
    }

    /// Checks that the code can make a block of `source_symbols`.
    fn check_block_length(&self, source_symbols: u32) -> Result<(), BlockLengthError> {
        BlockLengthError::check(source_symbols, self.profile().max_source_symbols)
    }

    /// The parameters as protocols carry them.
    pub fn parameters(&self) -> SchemeParameters {
        self.code().parameters()
    }

    /// The inverse of [`parameters`](Self::parameters). The numbers come from a peer:
    /// [`Oti::layout`](crate::Oti::layout) checks them.
    ///
    /// # Errors
    /// [`CodeError`] if no code of this crate has such parameters.
    pub fn from_parameters(parameters: &SchemeParameters) -> Result<Self, CodeError> {
        parser(parameters.encoding_id, parameters.instance_id)?.1(parameters)
    }

    /// Bytes of the scheme-specific information of a code.
    ///
    /// # Errors
    /// [`CodeError::EncodingId`], [`CodeError::InstanceId`].
    pub fn information_size(
        encoding_id: EncodingId,
        instance_id: Option<u16>,
    ) -> Result<usize, CodeError> {
        Ok(parser(encoding_id, instance_id)?.0.information_size)
    }
}

fn parser(
    encoding_id: EncodingId,
    instance_id: Option<u16>,
) -> Result<&'static (Format, Parser), CodeError> {
    let is_of = |(format, _): &&(Format, Parser)| format.is_of(encoding_id, instance_id);
    let has_instances = |(format, _): &(Format, Parser)| format.encoding_id == encoding_id;
    PARSERS.iter().find(is_of).ok_or_else(|| match instance_id {
        Some(instance_id) if PARSERS.iter().any(has_instances) => {
            CodeError::InstanceId { encoding_id: encoding_id.0, instance_id }
        }
        _ => CodeError::EncodingId(encoding_id.0),
    })
}

impl PlanCache {
    /// The plan of a block of `source_symbols` that are all available, ready to be executed.
    ///
    /// # Errors
    /// [`BlockLengthError`] if the code has no such block.
    pub fn source_plan(
        &self,
        scheme: FecScheme,
        source_symbols: u32,
    ) -> Result<Arc<Plan>, BlockLengthError> {
        scheme.check_block_length(source_symbols)?;
        Ok(scheme.code().source_plan(source_symbols, Some(self)))
    }

    /// An empty decoder for a block of `source_symbols`, which uses and shares the plan of the full
    /// block if that is faster.
    ///
    /// # Errors
    /// [`BlockLengthError`] if the code has no such block.
    pub fn decoder(
        &self,
        scheme: FecScheme,
        source_symbols: u32,
    ) -> Result<Box<dyn IdDecoder>, BlockLengthError> {
        scheme.check_block_length(source_symbols)?;
        Ok(scheme.code().decoder(source_symbols, Some(self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::lt::LtCode;
    use crate::codes::reed_solomon::ReedSolomonCode;
    use crate::codes::tornado::TornadoCode;

    fn schemes() -> Vec<FecScheme> {
        let max_source_block_length = 100;
        let code = TornadoCode::new(3, 1 << 60 | 7).unwrap();
        let mut schemes = vec![
            FecScheme::NoCode(NoCode { max_source_block_length }),
            FecScheme::Raptor(Raptor { source_blocks: 259, sub_blocks: 2, alignment: 4 }),
            FecScheme::RaptorQ(RaptorQ { source_blocks: 9, sub_blocks: 258, alignment: 4 }),
            FecScheme::Tornado(Tornado { max_source_block_length, code }),
        ];
        let lt = [LtCode::fast(100, 1 << 50), LtCode::strict(100, 3)];
        schemes.extend(lt.map(|code| FecScheme::Lt(Lt { max_source_block_length, code })));
        let codes = [
            ReedSolomonCode::Rfc5510,
            ReedSolomonCode::SmallBlock,
            ReedSolomonCode::Cauchy,
            ReedSolomonCode::Cauchy16,
        ];
        schemes.extend(codes.map(|code| {
            let (max_source_block_length, max_encoding_symbols) = (100, 200);
            FecScheme::ReedSolomon(ReedSolomon {
                code,
                max_source_block_length,
                max_encoding_symbols,
            })
        }));
        schemes
    }

    #[test]
    fn parameters_are_read_back() {
        for scheme in schemes() {
            let parameters = scheme.parameters();
            assert_eq!(parameters.encoding_id, scheme.profile().encoding_id);
            assert_eq!(FecScheme::from_parameters(&parameters), Ok(scheme));
            let size = FecScheme::information_size(parameters.encoding_id, parameters.instance_id);
            assert_eq!(size, Ok(parameters.information.bytes().len()), "{scheme:?}");
        }
    }

    #[test]
    fn missing_parameters_are_refused() {
        for scheme in schemes() {
            let SchemeParameters { encoding_id, instance_id, .. } = scheme.parameters();
            let none = SchemeParameters::new(encoding_id, instance_id);
            let refused = FecScheme::from_parameters(&none);
            assert!(matches!(refused, Err(CodeError::Parameter(_))), "{scheme:?}");
        }
    }

    #[test]
    fn unknown_ids_are_refused() {
        let parse = |id, instance_id| {
            FecScheme::from_parameters(&SchemeParameters::new(EncodingId(id), instance_id))
        };
        assert_eq!(parse(7, None), Err(CodeError::EncodingId(7)));
        for encoding_id in [128, 129] {
            let refused = CodeError::InstanceId { encoding_id, instance_id: 9 };
            assert_eq!(parse(encoding_id, Some(9)), Err(refused));
        }
    }
}
