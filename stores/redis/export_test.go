package redis

// InFlight returns the number of requests on the connections of a single server.
func InFlight(s *Store) int {
	n := 0
	for _, k := range s.nodes.only.links {
		if c := k.now.Load(); c != nil {
			n += len(c.places)
		}
	}
	return n
}
