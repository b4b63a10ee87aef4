//! Congestion control information of a packet, as the schemes have it: 32 bits (flag C = 0).

use crate::id::Cci;

/// `SP and burst flags in a filler, 8 ‖ layer, 8 ‖ number on the layer, 16`: the format of MCL, with
/// one bit of its filler for bursts, which MCL does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RlcCci {
    /// The packet is a synchronization point of its layer.
    pub sync_point: bool,
    /// It was sent in a burst.
    pub burst: bool,
    /// The layer.
    pub layer: u8,
    /// Counts the packets of the layer.
    pub sequence: u16,
}

/// `trigger, 1 ‖ slot, 7 ‖ layer, 8 ‖ number on the layer, 16`: the format of MCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlidCci {
    /// Receivers whose highest layer this is may take one more.
    pub trigger: bool,
    /// The slot, modulo 128.
    pub slot: u8,
    /// The layer.
    pub layer: u8,
    /// Counts the packets of the layer.
    pub sequence: u16,
}

/// `current time slot, 8 ‖ channel, 8 ‖ number on the channel, 16`: RFC 3738, section 5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebrcCci {
    /// `CTSI`: the slot that the packet was sent in, modulo `T`.
    pub slot: u8,
    /// `CN`: `T` is the base channel, less than `T` the wave channel.
    pub channel: u8,
    /// `PSN`: counts the packets of the channel. The last one of a wave is 65535.
    pub sequence: u16,
}

/// MCL's filler, which says nothing.
const RLC_FILLER: u8 = 0x55;
const RLC_SYNC_POINT: u8 = 0x80;
/// Zero in the filler.
const RLC_BURST: u8 = 0x02;
const FLID_TRIGGER: u8 = 0x80;

/// The four bytes of a CCI of one word.
fn bytes(cci: Cci) -> Option<[u8; 4]> {
    (cci.words() == 1).then(|| cci.low32().to_be_bytes())
}

fn cci(first: u8, second: u8, sequence: u16) -> Cci {
    let [high, low] = sequence.to_be_bytes();
    Cci::from_u32(u32::from_be_bytes([first, second, high, low]))
}

impl RlcCci {
    /// `None` if the CCI is wider than 32 bits.
    pub fn parse(cci: Cci) -> Option<Self> {
        let [flags, layer, high, low] = bytes(cci)?;
        Some(Self {
            sync_point: flags & RLC_SYNC_POINT != 0,
            burst: flags & RLC_BURST != 0,
            layer,
            sequence: u16::from_be_bytes([high, low]),
        })
    }

    /// The CCI that says so.
    pub fn emit(self) -> Cci {
        let sync_point = if self.sync_point { RLC_SYNC_POINT } else { 0 };
        let burst = if self.burst { RLC_BURST } else { 0 };
        cci(RLC_FILLER | sync_point | burst, self.layer, self.sequence)
    }
}

impl FlidCci {
    /// Slots are counted modulo this.
    pub const SLOTS: u8 = 128;

    /// `None` if the CCI is wider than 32 bits.
    pub fn parse(cci: Cci) -> Option<Self> {
        let [first, layer, high, low] = bytes(cci)?;
        Some(Self {
            trigger: first & FLID_TRIGGER != 0,
            slot: first & !FLID_TRIGGER,
            layer,
            sequence: u16::from_be_bytes([high, low]),
        })
    }

    /// The CCI that says so.
    pub fn emit(self) -> Cci {
        let trigger = if self.trigger { FLID_TRIGGER } else { 0 };
        cci(self.slot & !FLID_TRIGGER | trigger, self.layer, self.sequence)
    }
}

impl WebrcCci {
    /// `None` if the CCI is wider than 32 bits: the long format is for more than 255 channels.
    pub fn parse(cci: Cci) -> Option<Self> {
        let [slot, channel, high, low] = bytes(cci)?;
        Some(Self { slot, channel, sequence: u16::from_be_bytes([high, low]) })
    }

    /// The CCI that says so.
    pub fn emit(self) -> Cci {
        cci(self.slot, self.channel, self.sequence)
    }
}
