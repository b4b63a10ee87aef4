//! Packets of a session whose rate follows its receivers: what each is for, and the number that
//! losses show in.

/// Bytes before a roll call or a payload.
pub(super) const HEADER_BYTES: usize = 13;
/// Payload of a data packet: with its headers it has as many bytes as one of the paper.
pub(super) const PAYLOAD_BYTES: u16 = 523;

const DATA: u8 = 0;
const ROLL_CALL: u8 = 1;

/// A packet of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionPacket<'p> {
    /// Counts all packets.
    pub(super) number: u64,
    pub(super) content: PacketContent<'p>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketContent<'p> {
    /// A symbol of this block.
    Symbol { block: u32 },
    /// The bytes of a roll call.
    RollCall(&'p [u8]),
}

impl<'p> SessionPacket<'p> {
    pub(super) fn parse(packet: &'p [u8]) -> Option<Self> {
        let (header, rest) = packet.split_at_checked(HEADER_BYTES)?;
        let (&kind, header) = header.split_first()?;
        let (number, header) = header.split_first_chunk()?;
        let block = u32::from_be_bytes(*header.first_chunk()?);
        let content = match kind {
            DATA => PacketContent::Symbol { block },
            ROLL_CALL => PacketContent::RollCall(rest),
            _ => return None,
        };
        Some(Self { number: u64::from_be_bytes(*number), content })
    }

    /// Writes what precedes the payload of a data packet, or all of a roll call's.
    pub(super) fn emit(&self, to: &mut Vec<u8>) {
        let (kind, block, rest) = match self.content {
            PacketContent::Symbol { block } => (DATA, block, &[][..]),
            PacketContent::RollCall(bytes) => (ROLL_CALL, 0, bytes),
        };
        to.push(kind);
        to.extend(self.number.to_be_bytes());
        to.extend(block.to_be_bytes());
        to.extend(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_parsed_as_it_was_written() {
        let contents = [PacketContent::Symbol { block: 7 }, PacketContent::RollCall(&[1, 2, 3])];
        for content in contents {
            let (packet, mut bytes) = (SessionPacket { number: 1 << 40, content }, Vec::new());
            packet.emit(&mut bytes);
            assert_eq!(SessionPacket::parse(&bytes), Some(packet));
        }
        assert_eq!(SessionPacket::parse(&[0; HEADER_BYTES - 1]), None);
        assert_eq!(SessionPacket::parse(&[9; HEADER_BYTES]), None);
    }
}
