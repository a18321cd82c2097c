package asn

import (
	"fmt"
	"net/netip"

	"github.com/oschwald/maxminddb-golang/v2"
)

// mmdb is a MaxMind database held in memory: mapped into it, a file that is
// replaced in place would end the process.
type mmdb struct{ reader *maxminddb.Reader }

// record is what databases of networks call the number: MaxMind and DB-IP in the
// first form, IPinfo in the second.
type record struct {
	Number uint32 `maxminddb:"autonomous_system_number"`
	Text   string `maxminddb:"asn"`
}

func openMMDB(data []byte) (*mmdb, error) {
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	m := &mmdb{reader}
	// A database of another kind (cities, say) opens as well, and would know
	// nobody for ever.
	looked := 0
	for result := range reader.Networks() {
		var rec record
		if looked++; looked > 1<<18 {
			break
		}
		if result.Err() != nil || result.Decode(&rec) != nil {
			return nil, fmt.Errorf("%w: a damaged database", ErrTable)
		}
		if rec.number() != 0 {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%w: a database without numbers of networks", ErrTable)
}

func (r *record) number() uint32 {
	if r.Number != 0 {
		return r.Number
	}
	n, _ := parseNumber(r.Text)
	return n
}

func (m *mmdb) lookup(a netip.Addr) uint32 {
	var rec record
	if m.reader.Lookup(a).Decode(&rec) != nil {
		return 0
	}
	return rec.number()
}
