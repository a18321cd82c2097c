// Package asn tells the number of the autonomous system that a client's address
// belongs to: from the field of an edge that has proven itself, or from a local
// table. It is the key of outer buckets: a crawler that spreads over the
// addresses of one hosting company is still one company's.
//
// Nothing here asks the network. A file is read when it is opened and on
// [File.Reload], and lookups go on in the old table meanwhile. No table is
// shipped: docs/identities.md says where they are to be had, and under which
// licences.
package asn
