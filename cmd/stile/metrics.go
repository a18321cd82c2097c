package main

import (
	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/stores/wrap"
	"github.com/stilehq/stile/wire"
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

// partsMetrics adds what the limiter, the tables and the memory of this instance
// count. A counter of the limiter begins anew with a reload.
func partsMetrics(m *gate.Metrics, r *wire.Ready) {
	m.Counter("stile_store_seconds_spent_total", "Time that round trips to the store took together.", func() float64 { return r.Store().Meter.Read().Spent.Seconds() })
	m.Counter("stile_refunds_lost_total", "Refunds that were not sent; each leaves one hit too many until its window ends.", func() float64 {
		lost, _ := r.Parts().Limiter.Refunds()
		return float64(lost)
	})
	m.Counter("stile_refunds_unknown_total", "Refunds whose outcome is unknown; never sent again.", func() float64 {
		_, unknown := r.Parts().Limiter.Refunds()
		return float64(unknown)
	})
	m.Gauge("stile_local_records", "Records in this instance's own memory: claims, and local counting.", func() float64 { return float64(r.Local().Records) })
	m.Gauge("stile_local_bytes", "What they take.", func() float64 { return float64(r.Local().Bytes) })
	m.Counter("stile_local_evicted_busy_total", "Records in use that a full table lost: raise store.max_keys, or a spray is under way.", func() float64 { return float64(r.Local().EvictedBusy) })
	m.Gauge("stile_crawlers_age_seconds", "Age of the crawler ranges that their source confirmed longest ago; 0 = none are held.", func() float64 {
		if v := r.Crawlers(); v != nil {
			oldest, _ := v.Age()
			return oldest.Seconds()
		}
		return 0
	})
	m.Gauge("stile_crawlers_empty_lists", "Lists of crawler ranges that hold nothing.", func() float64 {
		if v := r.Crawlers(); v != nil {
			_, empty := v.Age()
			return float64(empty)
		}
		return 0
	})
	m.Counter("stile_crawlers_dropped_total", "Claims that were not looked up because the queue was full.", func() float64 {
		if v := r.Crawlers(); v != nil {
			return float64(v.Dropped())
		}
		return 0
	})
	m.Gauge("stile_mode", "What the policy does: 0 off, 1 observe, 2 enforce.", func() float64 {
		switch r.Parts().Policy.Mode {
		case policy.ModeOff:
			return 0
		case policy.ModeObserve:
			return 1
		}
		return 2
	})
}
