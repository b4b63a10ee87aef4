//! The interface and address that packets are sent from, and the size of packets.

use crate::addressing::Addressing;
use crate::error::Error;
use crate::geometry::Code;

use fontana_net::{ChannelAddress, Interface, IpVersion, SendConfig, SendSocket};
use fontana_wire::SEAL_BYTES;

/// Bytes of the LCT header with 32-bit TSI and TOI. The FEC payload id follows.
const LCT_HEADER_BYTES: usize = 16;
/// Bytes of EXT_FDT and EXT_CENC.
pub(super) const FDT_EXTENSION_BYTES: u16 = 4;
pub(super) const CENC_BYTES: u16 = 4;

/// The interface and address that packets are sent from.
pub(super) struct Egress {
    interface: Interface,
    pub(super) version: IpVersion,
}

impl Egress {
    pub(super) fn of(addressing: &Addressing) -> Result<Self, Error> {
        let interface = addressing.interface()?;
        Ok(Self { interface, version: IpVersion::of(addressing.address().ip()) })
    }

    /// Bytes of a symbol: `wanted`, or as many as fit in a packet with `extension_bytes` of header
    /// extensions and a seal.
    pub(super) fn symbol_size(
        &self,
        wanted: Option<u16>,
        code: Code,
        extension_bytes: u16,
    ) -> Result<u16, Error> {
        wanted.map_or_else(
            || {
                let header = self.payload_bytes(0, code, extension_bytes);
                // Also without a group key: the key does not change the geometry of the content.
                let (mtu, reserved) = (self.interface.mtu, SEAL_BYTES);
                let size = fontana_net::symbol_size_for(mtu, self.version, header, reserved)?;
                Ok(size as u16)
            },
            Ok,
        )
    }

    /// UDP payload of a packet of content in bytes, with `extension_bytes` of header extensions.
    pub(super) fn payload_bytes(
        &self,
        symbol_size: u16,
        code: Code,
        extension_bytes: u16,
    ) -> usize {
        LCT_HEADER_BYTES
            + usize::from(extension_bytes)
            + fontana_wire::payload_id_size(code.encoding_id())
            + usize::from(symbol_size)
    }

    /// Bytes of a packet of content on the wire, with `extension_bytes` of header extensions.
    pub(super) fn packet_bytes(&self, symbol_size: u16, code: Code, extension_bytes: u16) -> u16 {
        let payload = self.payload_bytes(symbol_size, code, extension_bytes);
        let bytes = self.version.header_size() + payload;
        u16::try_from(bytes).unwrap_or(u16::MAX)
    }

    pub(super) fn socket(&self, addressing: &Addressing) -> Result<SendSocket, Error> {
        let destinations = addressing.destinations(&self.interface)?;
        let config = match &destinations[..] {
            [ChannelAddress::Unicast(hosts)] => SendConfig::unicast(vec![hosts.clone()]),
            _ => SendConfig::new(&self.interface, destinations),
        };
        Ok(SendSocket::new(&SendConfig { hop_limit: addressing.hop_limit, ..config })?)
    }
}
