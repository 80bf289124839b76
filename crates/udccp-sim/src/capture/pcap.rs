pub(crate) struct PcapWriter;
