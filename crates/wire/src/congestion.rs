//! Congestion control on the wire: the parameters in the session head. The CCI of each packet
//! ([`RlcCci`](crate::RlcCci), [`FlidCci`](crate::FlidCci), [`WebrcCci`](crate::WebrcCci)) adds
//! what concerns the packet.

use crate::bytes::Reader;
use std::time::Duration;

/// Largest number of channels of a session. A receiver may be joined to most of them at once, and
/// each takes an entry in every switch on the path. 64 channels are enough for 500 Mbit/s with
/// WEBRC.
pub const MAX_CHANNELS: u8 = 64;

/// Numbers of the schemes in a session head.
const FIXED_RATE: u8 = 0;
const FIXED_LAYERS: u8 = 1;
const RLC: u8 = 2;
const FLID_SL: u8 = 3;
const WEBRC: u8 = 4;

/// Congestion control scheme of a session, with its parameters.
///
/// | | a channel is | the CCI is | source |
/// |---|---|---|---|
/// | [`FixedRate`](CongestionControl::FixedRate) | the session | a sequence number | |
/// | [`FixedLayers`](CongestionControl::FixedLayers) | a layer of constant rate | a sequence number | |
/// | [`Rlc`](CongestionControl::Rlc) | a layer | synchronization point, layer, sequence number | Vicisano, Rizzo, Crowcroft 1998; MCL |
/// | [`FlidSl`](CongestionControl::FlidSl) | a layer | trigger, slot, layer, sequence number | Byers and others 2000; MCL |
/// | [`Webrc`](CongestionControl::Webrc) | the base, or a wave | slot, channel, sequence number | RFC 3738, section 5.1 |
///
/// The sequence number counts the packets of the channel, so that receivers detect losses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// One channel at a constant rate, for which the sender's operator is responsible.
    #[default]
    FixedRate,
    /// Cumulative layers of constant rate. A receiver joins as many as its configuration says.
    FixedLayers(LayerRates),
    /// Receiver-driven layered congestion control (RLC).
    Rlc(Rlc),
    /// Fair layered increase and decrease with static layers (FLID-SL).
    FlidSl(FlidSl),
    /// Wave and equation based rate control (WEBRC).
    Webrc(Webrc),
}

/// Rates of cumulative layers: a receiver of layer `i` also receives all layers below. Every layer
/// has a rate above 0. The sum is less than 2^32 bytes per second, IP and UDP headers included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerRates(Rates);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rates {
    /// Layers 0 to `i` together have `base * (ratio / 256)^i`, rounded down at each step.
    Geometric { base: u32, ratio_256ths: u16, layers: u8 },
    /// Rate of each layer by itself, in bytes per second.
    Listed(Vec<u32>),
}

/// Parameters of RLC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rlc {
    /// Rates of the layers.
    pub layers: LayerRates,
    /// Time between the synchronization points of the lowest layer.
    pub cycle_milliseconds: u16,
    /// Spacing of the synchronization points of the higher layers.
    pub spacing: SyncSpacing,
    /// Length of a burst; 0: no bursts. In the burst before a synchronization point, the sender
    /// sends the layers that have the point at the rate of the next level.
    pub burst_milliseconds: u16,
    /// Time after a leave during which a receiver does not act, so that the leave can take effect.
    pub deaf_milliseconds: u16,
}

/// Number of cycles between the synchronization points of layer `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncSpacing {
    /// `2^i`: the points of a layer are a subset of those of the layer below, so that receivers
    /// behind one bottleneck decide at the same time.
    #[default]
    Nested,
    /// `2^(i + 1) - 1`, as in the library MCL.
    Mcl,
}

/// Parameters of FLID-SL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlidSl {
    /// Rates of the layers.
    pub layers: LayerRates,
    /// Length of a slot. Receivers change their level once per slot.
    pub slot_milliseconds: u16,
}

/// Parameters of WEBRC (RFC 3738, section 3.1.1). Channel 0 is the base channel; channel `1 + i` is
/// wave channel `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webrc {
    /// `SR_b`: the constant rate of all channels together.
    pub rate_bytes_per_second: u32,
    /// `LENP_B`: size of every packet, IP and UDP headers included.
    pub packet_bytes: u16,
    /// `BCR_P`: packets per second of the base channel at the beginning of a slot.
    pub base_packets_per_second: u16,
    /// `TSD`: length of a slot.
    pub slot_milliseconds: u16,
    /// `P`, in 256ths: fraction of a channel's rate that remains at the end of a slot.
    pub decay_256ths: u8,
    /// `N`: length of a wave in slots, and number of waves that are active at a time.
    pub wave_slots: u8,
    /// `Q`: number of slots that a wave channel is quiet before its next wave. It exceeds the time
    /// that a leave takes.
    pub quiet_slots: u8,
}

/// Reason why the parameters of a congestion control are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CongestionError {
    /// An unknown scheme.
    #[error("congestion control {0} is unknown; a later Fontana may know it")]
    Scheme(u8),
    /// A value outside its range.
    #[error("congestion control: {what} is {actual}, allowed is {least} to {most}")]
    Range {
        /// Name of the parameter.
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
    /// Geometric layers: the first `i + 1` together have `base_bytes_per_second * (ratio_256ths /
    /// 256)^i`. A ratio of 512 doubles: the layers relate as 1, 1, 2, 4, ...
    ///
    /// # Errors
    /// [`CongestionError::Range`] unless there are 1 to 64 layers, each with a rate above 0, with a
    /// sum less than 2^32.
    pub fn geometric(
        base_bytes_per_second: u32,
        ratio_256ths: u16,
        layers: u8,
    ) -> Result<Self, CongestionError> {
        let rates = Rates::Geometric { base: base_bytes_per_second, ratio_256ths, layers };
        Self(rates).checked()
    }

    /// Layers of the given rates in bytes per second, the lowest layer first.
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
            range("the rate of a layer", rate.saturating_sub(below), 1, u32::MAX.into())?;
            below = rate;
        }
        range("the rate of all layers", below, 1, u32::MAX.into())?;
        Ok(self)
    }

    /// Number of layers: 1 to 64.
    pub fn layer_count(&self) -> u8 {
        match &self.0 {
            Rates::Geometric { layers, .. } => *layers,
            Rates::Listed(rates) => rates.len() as u8,
        }
    }

    /// Rate of each layer and all below it, in bytes per second.
    pub fn cumulative(&self) -> impl Iterator<Item = u64> + '_ {
        let mut sum = 0_u64;
        (0..usize::from(self.layer_count())).map(move |layer| {
            sum = match &self.0 {
                Rates::Geometric { base, .. } if layer == 0 => u64::from(*base),
                Rates::Geometric { ratio_256ths, .. } => {
                    sum.saturating_mul((*ratio_256ths).into()) / 256
                }
                Rates::Listed(rates) => {
                    sum.saturating_add(rates.get(layer).map_or(0, |&rate| u64::from(rate)))
                }
            };
            sum
        })
    }

    /// Rate of all layers together, in bytes per second.
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
        // A burst and the pause after it fit between two synchronization points. If rates double,
        // the pause is as long as the burst.
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
    /// `T`: number of wave channels, and number of slots after which the schedule repeats.
    pub const fn wave_channels(&self) -> u8 {
        self.wave_slots.saturating_add(self.quiet_slots)
    }

    /// `L`: number of packets of the base channel in a slot.
    pub fn base_packets_per_slot(&self) -> u16 {
        let decay = f64::from(self.decay_256ths) / 256.0;
        let rate = f64::from(self.base_packets_per_second);
        let slot = Duration::from_millis(self.slot_milliseconds.into()).as_secs_f64();
        let packets = (rate * slot * (1.0 - decay) / -decay.ln()).ceil();
        (packets as u64).clamp(1, 1 << 15) as u16
    }

    /// Modulus of the base channel's sequence numbers: the largest multiple of
    /// [`base_packets_per_slot`](Self::base_packets_per_slot) that is at most 2^16.
    pub fn base_modulus(&self) -> u32 {
        const LIMIT: u32 = 1 << 16;
        let packets = u32::from(self.base_packets_per_slot());
        LIMIT.saturating_sub(LIMIT.checked_rem(packets).unwrap_or(0))
    }

    fn checked(self) -> Result<Self, CongestionError> {
        let most = u32::MAX.into();
        range("the rate of WEBRC", self.rate_bytes_per_second.into(), 1, most)?;
        // The size of an IP and a UDP header.
        range("the packet of WEBRC", self.packet_bytes.into(), 28, u16::MAX.into())?;
        let base = self.base_packets_per_second.into();
        range("the base rate of WEBRC", base, 1, u16::MAX.into())?;
        range("the slot of WEBRC in ms", self.slot_milliseconds.into(), 100, u16::MAX.into())?;
        // The default is 192. Below 1/2 a wave decays to nothing in a few slots; above 250/256
        // there would be more waves than channels.
        range("the decay of WEBRC", self.decay_256ths.into(), 128, 250)?;
        let (waves, quiet) = (u64::from(self.wave_slots), u64::from(self.quiet_slots));
        // Channel 0 is the base channel. Active and quiet slots take at least one of the others
        // each.
        const MOST: u64 = MAX_CHANNELS as u64 - 1;
        range("the slots of a wave of WEBRC", waves, 1, MOST - 1)?;
        range("the quiet slots of WEBRC", quiet, 1, MOST - 1)?;
        range("the wave channels of WEBRC", waves.saturating_add(quiet), 2, MOST)?;
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
            let expected = u64::from(webrc.wave_channels()).saturating_add(1);
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
    /// Size in bytes of the longest parameters: RLC with 64 listed layers.
    pub const MAX_PARAMETER_SIZE: usize = 1 + 4 * MAX_CHANNELS as usize + 7;

    /// These parameters, if they are in range.
    ///
    /// # Errors
    /// [`CongestionError::Range`] names the parameter and its range.
    pub fn checked(self) -> Result<Self, CongestionError> {
        Ok(match self {
            Self::Rlc(rlc) => Self::Rlc(rlc.checked()?),
            Self::FlidSl(flid) => Self::FlidSl(flid.checked()?),
            Self::Webrc(webrc) => Self::Webrc(webrc.checked()?),
            Self::FixedRate | Self::FixedLayers(_) => self,
        })
    }

    /// Number of channels of the session: 1 to 64.
    pub fn channel_count(&self) -> u8 {
        match self {
            Self::FixedRate => 1,
            Self::FixedLayers(layers)
            | Self::Rlc(Rlc { layers, .. })
            | Self::FlidSl(FlidSl { layers, .. }) => layers.layer_count(),
            Self::Webrc(webrc) => webrc.wave_channels().saturating_add(1),
        }
    }

    /// Name of the scheme in texts for users.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::FixedRate | Self::FixedLayers(_) => "fixed",
            Self::Rlc(_) => "rlc",
            Self::FlidSl(_) => "flid-sl",
            Self::Webrc(_) => "webrc",
        }
    }

    /// Size in bytes of the parameters in a head.
    pub fn parameter_size(&self) -> usize {
        let mut out = Vec::new();
        self.emit(&mut out);
        out.len().saturating_sub(2)
    }

    /// Appends `scheme ‖ channels ‖ parameters`.
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

    /// Reads what [`emit`](Self::emit) writes; `None` if the bytes end too early.
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
