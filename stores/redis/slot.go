package redis

// slotCount is the number of slots of a Redis Cluster.
const slotCount = 16384

// crcTable holds CRC-16/XMODEM (polynomial 0x1021), byte by byte, which the
// cluster specification prescribes for slots.
var crcTable = func() (t [256]uint16) {
	for i := range t {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		t[i] = crc
	}
	return t
}()

// slot returns the slot of a key name. Names of rows have no braces (package
// rows escapes them), so there are no hash tags to look for.
func slot(name string) uint16 {
	crc := uint16(0)
	for i := 0; i < len(name); i++ {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^name[i]]
	}
	return crc % slotCount
}
