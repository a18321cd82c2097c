package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/stilehq/stile/core/rows"
)

func (v *validator) exempt() {
	seen := map[netip.Prefix]int{}
	for i, n := range v.f.Exempt.Networks {
		path := fmt.Sprintf("exempt.networks[%d]", i)
		if !v.given(path + ".cidr") {
			v.fail(path+".cidr", "is missing", "write a range like 192.0.2.0/24")
			continue
		}
		if v.spoilt(path + ".cidr") {
			continue
		}
		if strings.TrimSpace(n.Reason) == "" {
			v.fail(path+".reason", "is missing", "say why "+n.CIDR.String()+" is exempt: the next person will need to know")
		}
		if first, dup := seen[n.CIDR]; dup {
			v.fail(path+".cidr", fmt.Sprintf("%s is listed as entry %d too", n.CIDR, first), "keep one")
		}
		seen[n.CIDR] = i
		switch {
		case n.Multiply < 0 || n.Multiply > maxMultiply:
			v.fail(path+".multiply", fmt.Sprintf("%d is no multiple of the limits", n.Multiply), fmt.Sprintf("write 2 to %d, or 0 to exempt the range", maxMultiply))
		case n.Multiply == 1:
			v.warn(path+".multiply", "1 changes nothing", "remove the entry, or write 0 to exempt the range")
		case n.Multiply == 0 && n.CIDR.Bits() == 0:
			v.warn(path+".cidr", n.CIDR.String()+" exempts everybody", "write a narrower range, or use mode: observe")
		}
		if v.expired(n) {
			v.warn(path+".until", n.Until.String()+" has passed: the range is counted like any other", "remove the entry or give it a new date")
		}
	}
	for _, class := range CrawlerClasses() {
		t, path := v.f.Exempt.Crawlers[class], "exempt.crawlers."+class
		if _, ok := v.origin[path+".multiply"]; !ok {
			continue
		}
		switch {
		case t.Multiply < 1 || t.Multiply > maxMultiply:
			v.fail(path+".multiply", fmt.Sprintf("%d is no multiple of the limits", t.Multiply), fmt.Sprintf("write 2 to %d, or exempt, or ordinary", maxMultiply))
		case t.Multiply == 1:
			v.warn(path+".multiply", "1 changes nothing", "write ordinary")
		}
	}
}

func (v *validator) expired(n Network) bool {
	return !n.Until.IsZero() && !v.now.Before(n.Until.Time)
}

// measured compares the limits of addresses with what was measured.
func (v *validator) measured() {
	m := v.f.Measured
	if m == nil {
		return
	}
	v.period(m.Period)
	for _, k := range []struct {
		path  string
		value int64
	}{
		{"measured.human_p999_per_hour", m.HumanP999PerHour}, {"measured.human_p999_per_day", m.HumanP999PerDay},
		{"measured.abuser_per_hour", m.AbuserPerHour}, {"measured.abuser_per_day", m.AbuserPerDay},
	} {
		if k.value < 0 {
			v.fail(k.path, fmt.Sprintf("%d is negative", k.value), "write 0 for unknown")
		}
	}
	caught, compared := false, false
	for i := range v.f.Buckets {
		b := &v.f.Buckets[i]
		human, abuser := m.HumanP999PerDay, m.AbuserPerDay
		switch {
		case b.Key.Kind() != rows.Address || len(b.Paths) > 0:
			continue
		case b.Window == time.Hour:
			human, abuser = m.HumanP999PerHour, m.AbuserPerHour
		case b.Window != 24*time.Hour:
			continue
		}
		limit := int64(min(float64(b.Limit)*v.f.Scale, MaxLimit))
		if human > 0 && limit <= human {
			v.warn(fmt.Sprintf("buckets[%d].limit", i), fmt.Sprintf("%s admits %d, and one in a thousand people was measured at %d", b.Name, limit, human), "raise it above what people do")
		}
		compared = compared || abuser > 0
		caught = caught || abuser > limit
	}
	if compared && !caught {
		v.warn("measured", "no bucket of addresses is below what the abuser was measured at", "lower a limit, or key on something else")
	}
}

func (v *validator) period(s string) {
	if s == "" {
		return
	}
	first, last, ok := strings.Cut(s, "/")
	a, err1 := time.Parse(time.DateOnly, first)
	b, err2 := time.Parse(time.DateOnly, last)
	if !ok || err1 != nil || err2 != nil || b.Before(a) {
		v.fail("measured.period", fmt.Sprintf("%q is no period", s), "write FIRST/LAST, like 2026-10-01/2026-10-30")
	}
}
