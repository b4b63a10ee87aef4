//! BMTP's packets (figure 2), without the UDP and IP header.

/// Bytes of a UDP and an IPv4 header.
pub(super) const UDP_IP_BYTES: u32 = 28;
/// Payload of a data packet.
pub(super) const PAYLOAD_BYTES: u16 = 512;

/// The NAK field of a status packet that requests nothing.
const NO_NAK: u64 = u64::MAX;

/// What precedes the payload of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BmtpData {
    /// The sum of the receivers' weights: N.
    pub(super) divisor: u32,
    /// Measurement interval, in milliseconds.
    pub(super) interval_ms: u32,
    /// Counts all packets.
    pub(super) packet: u64,
    /// Number of the payload. That of a packet without payload is the number of the payload that
    /// would come next: all below it have been sent.
    pub(super) data: u64,
}

impl BmtpData {
    pub(super) const BYTES: usize = 24;

    /// Parses the beginning of a packet. Returns what follows it, too.
    pub(super) fn parse(packet: &[u8]) -> Option<(Self, &[u8])> {
        let (divisor, rest) = packet.split_first_chunk()?;
        let (interval_ms, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (data, rest) = rest.split_first_chunk()?;
        let header = Self {
            divisor: u32::from_be_bytes(*divisor),
            interval_ms: u32::from_be_bytes(*interval_ms),
            packet: u64::from_be_bytes(*number),
            data: u64::from_be_bytes(*data),
        };
        Some((header, rest))
    }

    pub(super) fn emit(&self, to: &mut Vec<u8>) {
        to.extend(self.divisor.to_be_bytes());
        to.extend(self.interval_ms.to_be_bytes());
        to.extend(self.packet.to_be_bytes());
        to.extend(self.data.to_be_bytes());
    }
}

/// A status packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BmtpStatus {
    /// The time in which packets were counted, in milliseconds; 0 if the receiver has not listened
    /// for a measurement interval, and reports no rate.
    pub(super) interval_ms: u32,
    /// Packets that it received in this time.
    pub(super) received: u64,
    /// Packets that it did not.
    pub(super) lost: u64,
    /// The number of a payload that it requests.
    pub(super) nak: Option<u64>,
}

impl BmtpStatus {
    pub(super) const BYTES: usize = 28;

    /// Parses a packet, which may be longer.
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let (interval_ms, rest) = packet.split_first_chunk()?;
        let (received, rest) = rest.split_first_chunk()?;
        let (lost, rest) = rest.split_first_chunk()?;
        let (nak, _) = rest.split_first_chunk()?;
        Some(Self {
            interval_ms: u32::from_be_bytes(*interval_ms),
            received: u64::from_be_bytes(*received),
            lost: u64::from_be_bytes(*lost),
            nak: Some(u64::from_be_bytes(*nak)).filter(|&nak| nak != NO_NAK),
        })
    }

    pub(super) fn emit(&self, to: &mut Vec<u8>) {
        to.extend(self.interval_ms.to_be_bytes());
        to.extend(self.received.to_be_bytes());
        to.extend(self.lost.to_be_bytes());
        to.extend(self.nak.unwrap_or(NO_NAK).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_packet_of_figure_2_has_564_bytes_and_survives_the_wire() {
        let header = BmtpData { divisor: 1_000, interval_ms: 20_000, packet: 9, data: u64::MAX };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        assert_eq!(bytes.len() + usize::from(PAYLOAD_BYTES) + UDP_IP_BYTES as usize, 564);
        bytes.push(7);
        assert_eq!(BmtpData::parse(&bytes), Some((header, &[7][..])));
        assert_eq!(BmtpData::parse(&bytes[..BmtpData::BYTES - 1]), None);
    }

    #[test]
    fn a_status_packet_of_figure_2_has_56_bytes_and_survives_the_wire() {
        for nak in [None, Some(0), Some(u64::MAX - 1)] {
            let status = BmtpStatus { interval_ms: 20_000, received: 799, lost: 41, nak };
            let mut bytes = Vec::new();
            status.emit(&mut bytes);
            assert_eq!(bytes.len() + UDP_IP_BYTES as usize, 56);
            assert_eq!(BmtpStatus::parse(&bytes), Some(status));
            assert_eq!(BmtpStatus::parse(&bytes[..BmtpStatus::BYTES - 1]), None);
        }
    }
}
