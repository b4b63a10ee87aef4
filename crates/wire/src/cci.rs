//! The congestion control information (CCI) of a packet in the format of each scheme: 32 bits (flag
//! C = 0).

use crate::id::Cci;

/// CCI of RLC. The format is that of MCL: flags, 8 bits ‖ layer, 8 bits ‖ sequence number, 16 bits.
/// One bit of MCL's filler marks bursts, which MCL does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RlcCci {
    /// True if the packet is a synchronization point of its layer.
    pub sync_point: bool,
    /// True if the packet was sent in a burst.
    pub burst: bool,
    /// Number of the layer.
    pub layer: u8,
    /// Sequence number of the packet on its layer, modulo 2^16.
    pub sequence: u16,
}

/// CCI of FLID-SL. The format is that of MCL: trigger, 1 bit ‖ slot, 7 bits ‖ layer, 8 bits ‖
/// sequence number, 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlidCci {
    /// True if receivers whose highest layer is `layer` may join the next one.
    pub trigger: bool,
    /// Number of the slot, modulo 128.
    pub slot: u8,
    /// Number of the layer.
    pub layer: u8,
    /// Sequence number of the packet on its layer, modulo 2^16.
    pub sequence: u16,
}

/// CCI of WEBRC (RFC 3738, section 5.1): current time slot, 8 bits ‖ channel, 8 bits ‖ sequence
/// number, 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebrcCci {
    /// `CTSI`: the slot in which the packet was sent, modulo `T`.
    pub slot: u8,
    /// `CN`: `T` for the base channel, less than `T` for a wave channel.
    pub channel: u8,
    /// `PSN`: sequence number of the packet on its channel. The last packet of a wave has 65535.
    pub sequence: u16,
}

/// Filler of MCL, without meaning.
const RLC_FILLER: u8 = 0x55;
const RLC_SYNC_POINT: u8 = 0x80;
/// Flag of a burst; zero in MCL's filler.
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
    /// The fields of a CCI; `None` if it is wider than 32 bits.
    pub fn parse(cci: Cci) -> Option<Self> {
        let [flags, layer, high, low] = bytes(cci)?;
        Some(Self {
            sync_point: flags & RLC_SYNC_POINT != 0,
            burst: flags & RLC_BURST != 0,
            layer,
            sequence: u16::from_be_bytes([high, low]),
        })
    }

    /// The CCI with these fields.
    pub fn emit(self) -> Cci {
        let sync_point = if self.sync_point { RLC_SYNC_POINT } else { 0 };
        let burst = if self.burst { RLC_BURST } else { 0 };
        cci(RLC_FILLER | sync_point | burst, self.layer, self.sequence)
    }
}

impl FlidCci {
    /// Modulus of the slot numbers.
    pub const SLOTS: u8 = 128;

    /// The fields of a CCI; `None` if it is wider than 32 bits.
    pub fn parse(cci: Cci) -> Option<Self> {
        let [first, layer, high, low] = bytes(cci)?;
        Some(Self {
            trigger: first & FLID_TRIGGER != 0,
            slot: first & !FLID_TRIGGER,
            layer,
            sequence: u16::from_be_bytes([high, low]),
        })
    }

    /// The CCI with these fields.
    pub fn emit(self) -> Cci {
        let trigger = if self.trigger { FLID_TRIGGER } else { 0 };
        cci(self.slot & !FLID_TRIGGER | trigger, self.layer, self.sequence)
    }
}

impl WebrcCci {
    /// The fields of a CCI; `None` if it is wider than 32 bits. The long format is for more than
    /// 255 channels.
    pub fn parse(cci: Cci) -> Option<Self> {
        let [slot, channel, high, low] = bytes(cci)?;
        Some(Self { slot, channel, sequence: u16::from_be_bytes([high, low]) })
    }

    /// The CCI with these fields.
    pub fn emit(self) -> Cci {
        cci(self.slot, self.channel, self.sequence)
    }
}
