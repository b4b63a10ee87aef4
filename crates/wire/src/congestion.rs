//! Congestion control on the wire: what the session head says of it once, and what the CCI of every
//! packet says of the packet ([`RlcCci`](crate::RlcCci), [`FlidCci`](crate::FlidCci),
//! [`WebrcCci`](crate::WebrcCci)).
//!
//! | | a channel is | the CCI is | source |
//! |---|---|---|---|
//! | [`FixedRate`](CongestionControl::FixedRate) | the session | a number | |
//! | [`FixedLayers`](CongestionControl::FixedLayers) | a layer of constant rate | a number | |
//! | [`Rlc`](CongestionControl::Rlc) | a layer | synchronization point, layer, number | Vicisano, Rizzo, Crowcroft 1998; MCL |
//! | [`FlidSl`](CongestionControl::FlidSl) | a layer | trigger, slot, layer, number | Byers and others 2000; MCL |
//! | [`Webrc`](CongestionControl::Webrc) | the base, or a wave | slot, channel, number | RFC 3738, section 5.1 |
//!
//! A number counts the packets of its channel, so that receivers see losses.

use crate::bytes::Reader;

/// Most channels of a session. A receiver may have to be joined to most of them at once, and each
/// costs every switch on the way an entry; 64 are enough for 500 Mbit/s with WEBRC.
pub const MAX_CHANNELS: u8 = 64;

/// Numbers of the schemes in a session head.
const FIXED_RATE: u8 = 0;
const FIXED_LAYERS: u8 = 1;
const RLC: u8 = 2;
const FLID_SL: u8 = 3;
const WEBRC: u8 = 4;

/// How the rate of a session is controlled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// One channel, at a constant rate that the sender's operator answers for.
    #[default]
    FixedRate,
    /// Cumulative layers of constant rate: a receiver takes as many as it was told to.
    FixedLayers(LayerRates),
    /// Receiver-driven layered congestion control.
    Rlc(Rlc),
    /// Fair layered increase and decrease, with static layers.
    FlidSl(FlidSl),
    /// Wave and equation based rate control.
    Webrc(Webrc),
}

/// The rates of cumulative layers: who has layer `i` has all below it. Each layer has a rate, and
/// all together have less than 2^32 bytes per second, IP and UDP headers included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerRates(Rates);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rates {
    /// Layers up to `i` together have `base * (ratio / 256)^i`, rounded down at each step.
    Geometric { base: u32, ratio_256ths: u16, layers: u8 },
    /// Bytes per second of each layer by itself.
    Listed(Vec<u32>),
}

/// What RLC's sender does, and how long its receivers are deaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rlc {
    /// The layers.
    pub layers: LayerRates,
    /// Time between the synchronization points of the lowest layer.
    pub cycle_milliseconds: u16,
    /// Where those of the others are.
    pub spacing: SyncSpacing,
    /// How long before a synchronization point the layers that have one are sent at the rate of the
    /// next level; 0 = no bursts.
    pub burst_milliseconds: u16,
    /// For how long after a leave a receiver does not act: the leave must have taken effect.
    pub deaf_milliseconds: u16,
}

/// Cycles between the synchronization points of layer `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncSpacing {
    /// `2^i`: those of a layer are among those of the layer below, so that receivers behind one
    /// bottleneck decide together.
    #[default]
    Nested,
    /// `2^(i + 1) - 1`, as in the library MCL.
    Mcl,
}

/// What FLID-SL's sender does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlidSl {
    /// The layers.
    pub layers: LayerRates,
    /// Receivers change their level once in a slot.
    pub slot_milliseconds: u16,
}

/// The parameters of a WEBRC session (RFC 3738, section 3.1.1). The base channel is channel 0, wave
/// channel `i` is channel `1 + i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webrc {
    /// `SR_b`: rate of all channels together, which is constant.
    pub rate_bytes_per_second: u32,
    /// `LENP_B`: bytes of every packet, IP and UDP headers included.
    pub packet_bytes: u16,
    /// `BCR_P`: packets per second of the base channel at the beginning of a slot.
    pub base_packets_per_second: u16,
    /// `TSD`: duration of a slot.
    pub slot_milliseconds: u16,
    /// `P`, in 256ths: what is left of a channel's rate at the end of a slot.
    pub decay_256ths: u8,
    /// `N`: slots that a wave lasts, and waves that are active at a time.
    pub wave_slots: u8,
    /// `Q`: slots that a wave channel is quiet before it is used again: longer than a leave takes.
    pub quiet_slots: u8,
}

/// Why parameters are none that a session could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CongestionError {
    /// A scheme that is not known.
    #[error("congestion control {0} is unknown; a later Fontana may know it")]
    Scheme(u8),
    /// A number outside its range.
    #[error("congestion control: {what} is {actual}, allowed is {least} to {most}")]
    Range {
        /// What it is.
        what: &'static str,
        /// Its value.
        actual: u64,
        /// Smallest value allowed.
        least: u64,
        /// Largest value allowed.
        most: u64,
    },
}

fn range(what: &'static str, actual: u64, least: u64, most: u64) -> Result<(), CongestionError> {
    if (least..=most).contains(&actual) {
        return Ok(());
    }
    Err(CongestionError::Range { what, actual, least, most })
}

impl LayerRates {
    /// Layers of which the first `i + 1` have `base_bytes_per_second * (ratio_256ths / 256)^i`.
    /// A ratio of 512 is doubling: the layers are as 1, 1, 2, 4, ...
    ///
    /// # Errors
    /// [`CongestionError::Range`]: 1 to 64 layers, every one with a rate, less than 2^32 together.
    pub fn geometric(
        base_bytes_per_second: u32,
        ratio_256ths: u16,
        layers: u8,
    ) -> Result<Self, CongestionError> {
        let rates = Rates::Geometric { base: base_bytes_per_second, ratio_256ths, layers };
        Self(rates).checked()
    }

    /// Layers of these rates, the lowest first, in bytes per second.
    ///
    /// # Errors
    /// As [`geometric`](Self::geometric).
    pub fn listed(bytes_per_second: Vec<u32>) -> Result<Self, CongestionError> {
        Self(Rates::Listed(bytes_per_second)).checked()
    }

    fn checked(self) -> Result<Self, CongestionError> {
        let count = match &self.0 {
            Rates::Geometric { layers, .. } => u64::from(*layers),
            Rates::Listed(rates) => rates.len() as u64,
        };
        range("the number of layers", count, 1, MAX_CHANNELS.into())?;
        let cumulative: Vec<u64> = self.cumulative().collect();
        let mut below = 0;
        for &rate in &cumulative {
            range("the rate of a layer", rate - below.min(rate), 1, u32::MAX.into())?;
            below = rate;
        }
        range("the rate of all layers", below, 1, u32::MAX.into())?;
        Ok(self)
    }

    /// How many layers there are: 1 to 64.
    pub fn layer_count(&self) -> u8 {
        match &self.0 {
            Rates::Geometric { layers, .. } => *layers,
            Rates::Listed(rates) => rates.len() as u8,
        }
    }

    /// For each layer, bytes per second of it and all below.
    pub fn cumulative(&self) -> impl Iterator<Item = u64> + '_ {
        let mut sum = 0_u64;
        (0..usize::from(self.layer_count())).map(move |layer| {
            sum = match &self.0 {
                Rates::Geometric { base, .. } if layer == 0 => u64::from(*base),
                Rates::Geometric { ratio_256ths, .. } => {
                    sum.saturating_mul((*ratio_256ths).into()) / 256
                }
                Rates::Listed(rates) => sum + rates.get(layer).map_or(0, |&rate| u64::from(rate)),
            };
            sum
        })
    }

    /// Bytes per second of all layers.
    pub fn total(&self) -> u64 {
        self.cumulative().last().unwrap_or(0)
    }

    /// `None` if the bytes end too early.
    fn parse(reader: &mut Reader<'_>, layers: u8) -> Option<Result<Self, CongestionError>> {
        let rates = match reader.u8()? {
            0 => Rates::Geometric { base: reader.u32()?, ratio_256ths: reader.u16()?, layers },
            1 => Rates::Listed((0..layers).map(|_| reader.u32()).collect::<Option<_>>()?),
            form => {
                let (what, actual) = ("the form of the layers", form.into());
                return Some(Err(CongestionError::Range { what, actual, least: 0, most: 1 }));
            }
        };
        Some(Self(rates).checked())
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Rates::Geometric { base, ratio_256ths, .. } => {
                out.push(0);
                out.extend(base.to_be_bytes());
                out.extend(ratio_256ths.to_be_bytes());
            }
            Rates::Listed(rates) => {
                out.push(1);
                out.extend(rates.iter().flat_map(|rate| rate.to_be_bytes()));
            }
        }
    }
}

impl Rlc {
    fn checked(self) -> Result<Self, CongestionError> {
        range("the cycle of RLC in ms", self.cycle_milliseconds.into(), 1, u16::MAX.into())?;
        // A burst and the pause after it, which is as long if rates double, fit between two
        // synchronization points.
        let most = u64::from(self.cycle_milliseconds) / 2;
        range("the burst of RLC in ms", self.burst_milliseconds.into(), 0, most)?;
        Ok(self)
    }

    fn parse(reader: &mut Reader<'_>, layers: u8) -> Option<Result<Self, CongestionError>> {
        let layers = LayerRates::parse(reader, layers)?;
        let cycle_milliseconds = reader.u16()?;
        let spacing = reader.u8()?;
        let (burst_milliseconds, deaf_milliseconds) = (reader.u16()?, reader.u16()?);
        let spacing_known = range("the spacing of RLC", spacing.into(), 0, 1);
        let spacing = if spacing == 0 { SyncSpacing::Nested } else { SyncSpacing::Mcl };
        Some(layers.and_then(|layers| {
            spacing_known?;
            let rlc =
                Self { layers, cycle_milliseconds, spacing, burst_milliseconds, deaf_milliseconds };
            rlc.checked()
        }))
    }

    fn emit(&self, out: &mut Vec<u8>) {
        self.layers.emit(out);
        out.extend(self.cycle_milliseconds.to_be_bytes());
        out.push(match self.spacing {
            SyncSpacing::Nested => 0,
            SyncSpacing::Mcl => 1,
        });
        out.extend(self.burst_milliseconds.to_be_bytes());
        out.extend(self.deaf_milliseconds.to_be_bytes());
    }
}

impl FlidSl {
    fn checked(self) -> Result<Self, CongestionError> {
        range("the slot of FLID-SL in ms", self.slot_milliseconds.into(), 1, u16::MAX.into())?;
        Ok(self)
    }

    fn parse(reader: &mut Reader<'_>, layers: u8) -> Option<Result<Self, CongestionError>> {
        let layers = LayerRates::parse(reader, layers)?;
        let slot_milliseconds = reader.u16()?;
        Some(layers.and_then(|layers| Self { layers, slot_milliseconds }.checked()))
    }

    fn emit(&self, out: &mut Vec<u8>) {
        self.layers.emit(out);
        out.extend(self.slot_milliseconds.to_be_bytes());
    }
}

impl Webrc {
    /// `T`: wave channels, and slots after which everything repeats.
    pub const fn wave_channels(&self) -> u8 {
        self.wave_slots.saturating_add(self.quiet_slots)
    }

    fn checked(self) -> Result<Self, CongestionError> {
        let most = u32::MAX.into();
        range("the rate of WEBRC", self.rate_bytes_per_second.into(), 1, most)?;
        // An IP and a UDP header.
        range("the packet of WEBRC", self.packet_bytes.into(), 28, u16::MAX.into())?;
        let base = self.base_packets_per_second.into();
        range("the base rate of WEBRC", base, 1, u16::MAX.into())?;
        range("the slot of WEBRC in ms", self.slot_milliseconds.into(), 100, u16::MAX.into())?;
        // The default is 192. Below 1/2 a wave is hardly there; above 250/256 there would be more
        // waves than channels.
        range("the decay of WEBRC", self.decay_256ths.into(), 128, 250)?;
        let (waves, quiet) = (u64::from(self.wave_slots), u64::from(self.quiet_slots));
        // Channel 0 is the base, and each of the two takes at least one of the others.
        let most = u64::from(MAX_CHANNELS) - 1;
        range("the slots of a wave of WEBRC", waves, 1, most - 1)?;
        range("the quiet slots of WEBRC", quiet, 1, most - 1)?;
        range("the wave channels of WEBRC", waves + quiet, 2, most)?;
        Ok(self)
    }

    fn parse(reader: &mut Reader<'_>, channels: u8) -> Option<Result<Self, CongestionError>> {
        let webrc = Self {
            rate_bytes_per_second: reader.u32()?,
            packet_bytes: reader.u16()?,
            base_packets_per_second: reader.u16()?,
            slot_milliseconds: reader.u16()?,
            decay_256ths: reader.u8()?,
            wave_slots: reader.u8()?,
            quiet_slots: reader.u8()?,
        };
        Some(webrc.checked().and_then(|webrc| {
            let expected = u64::from(webrc.wave_channels()) + 1;
            range("the number of channels of WEBRC", channels.into(), expected, expected)?;
            Ok(webrc)
        }))
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.rate_bytes_per_second.to_be_bytes());
        out.extend(self.packet_bytes.to_be_bytes());
        out.extend(self.base_packets_per_second.to_be_bytes());
        out.extend(self.slot_milliseconds.to_be_bytes());
        out.extend([self.decay_256ths, self.wave_slots, self.quiet_slots]);
    }
}

impl CongestionControl {
    /// Bytes of the longest parameters: RLC with 64 listed layers.
    pub const MAX_PARAMETER_SIZE: usize = 1 + 4 * MAX_CHANNELS as usize + 7;

    /// The same, if it is something that a session could have and a head could say.
    ///
    /// # Errors
    /// [`CongestionError::Range`] says which parameter is not, and what it may be.
    pub fn checked(self) -> Result<Self, CongestionError> {
        Ok(match self {
            Self::Rlc(rlc) => Self::Rlc(rlc.checked()?),
            Self::FlidSl(flid) => Self::FlidSl(flid.checked()?),
            Self::Webrc(webrc) => Self::Webrc(webrc.checked()?),
            Self::FixedRate | Self::FixedLayers(_) => self,
        })
    }

    /// Channels of the session: 1 to 64.
    pub fn channel_count(&self) -> u8 {
        match self {
            Self::FixedRate => 1,
            Self::FixedLayers(layers)
            | Self::Rlc(Rlc { layers, .. })
            | Self::FlidSl(FlidSl { layers, .. }) => layers.layer_count(),
            Self::Webrc(webrc) => webrc.wave_channels().saturating_add(1),
        }
    }

    /// What people call it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::FixedRate | Self::FixedLayers(_) => "fixed",
            Self::Rlc(_) => "rlc",
            Self::FlidSl(_) => "flid-sl",
            Self::Webrc(_) => "webrc",
        }
    }

    /// Bytes that the parameters take in a head.
    pub fn parameter_size(&self) -> usize {
        let mut out = Vec::new();
        self.emit(&mut out);
        out.len() - 2
    }

    /// `scheme ‖ channels ‖ parameters`.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let scheme = match self {
            Self::FixedRate => FIXED_RATE,
            Self::FixedLayers(_) => FIXED_LAYERS,
            Self::Rlc(_) => RLC,
            Self::FlidSl(_) => FLID_SL,
            Self::Webrc(_) => WEBRC,
        };
        out.extend([scheme, self.channel_count()]);
        match self {
            Self::FixedRate => {}
            Self::FixedLayers(layers) => layers.emit(out),
            Self::Rlc(rlc) => rlc.emit(out),
            Self::FlidSl(flid) => flid.emit(out),
            Self::Webrc(webrc) => webrc.emit(out),
        }
    }

    /// `None` if the bytes end too early.
    pub(crate) fn parse(reader: &mut Reader<'_>) -> Option<Result<Self, CongestionError>> {
        let (scheme, channels) = (reader.u8()?, reader.u8()?);
        Some(match scheme {
            FIXED_RATE => {
                range("the number of channels", channels.into(), 1, 1).map(|()| Self::FixedRate)
            }
            FIXED_LAYERS => LayerRates::parse(reader, channels)?.map(Self::FixedLayers),
            RLC => Rlc::parse(reader, channels)?.map(Self::Rlc),
            FLID_SL => FlidSl::parse(reader, channels)?.map(Self::FlidSl),
            WEBRC => Webrc::parse(reader, channels)?.map(Self::Webrc),
            scheme => Err(CongestionError::Scheme(scheme)),
        })
    }
}
