package main

import (
	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/stores/wrap"
)

// storeMetrics adds what the store's wrappers count: what is paid for, what was
// saved, and what was lost.
func storeMetrics(m *gate.Metrics, s *wrap.Stacked) {
	read := func(of func(wrap.Reading) int64) func() float64 {
		return func() float64 { return float64(of(s.Meter.Read())) }
	}
	m.Counter("stile_store_trips_total", "Round trips to the store.", read(func(r wrap.Reading) int64 { return r.Trips }))
	m.Counter("stile_store_writes_total", "Rows written in the store; one billed operation each.", read(func(r wrap.Reading) int64 { return r.Writes }))
	m.Counter("stile_store_reads_total", "Rows only read in the store.", read(func(r wrap.Reading) int64 { return r.Reads }))
	m.Counter("stile_store_failed_rows_total", "Rows that the store proved unchanged.", read(func(r wrap.Reading) int64 { return r.Failed }))
	m.Counter("stile_store_unknown_rows_total", "Rows whose outcome is unknown; never sent again.", read(func(r wrap.Reading) int64 { return r.Unknown }))
	m.Counter("stile_store_local_rows_total", "Rows of outer buckets that were answered without the store.", func() float64 {
		local, _, _ := s.Behind.Counts()
		return float64(local)
	})
	m.Counter("stile_store_dropped_hits_total", "Hits of outer buckets that were lost with a report of unknown outcome.", func() float64 {
		_, _, dropped := s.Behind.Counts()
		return float64(dropped)
	})
	m.Counter("stile_store_spent_rows_total", "Rows not sent because of a spending limit.", func() float64 { return float64(s.Spend.Refused()) })
	m.Gauge("stile_store_breaker_open", "1 while the store is not asked because it did not answer.", func() float64 {
		if s.Guard.State() == "open" {
			return 1
		}
		return 0
	})
}
