package sizing

import (
	"fmt"
	"slices"
)

// A Distribution is how many address-hours (address-days) had how many pages.
type Distribution struct {
	Count int64 `json:"count"` // address-hours with at least one page
	P50   int   `json:"p50"`
	P90   int   `json:"p90"`
	P99   int   `json:"p99"`
	P999  int   `json:"p99_9"`
	Max   int   `json:"max"`
	// Histogram holds the counts by pages, in ranges whose lower ends double
	// four times per power of two, for plots.
	Histogram []Bin `json:"histogram"`
}

// Bin is one range of a histogram: From <= pages < To.
type Bin struct {
	From  int   `json:"from"`
	To    int   `json:"to"`
	Count int64 `json:"count"`
}

// distribute sorts values and describes them. Quantiles are by nearest rank: a
// number that really occurred, so that a limit set to it can be checked by hand.
func distribute(values []int) Distribution {
	slices.Sort(values)
	d := Distribution{Count: int64(len(values))}
	if len(values) == 0 {
		return d
	}
	at := func(permille int) int {
		rank := (len(values)*permille + 999) / 1000
		return values[max(rank, 1)-1]
	}
	d.P50, d.P90, d.P99, d.P999, d.Max = at(500), at(900), at(990), at(999), values[len(values)-1]
	edges := histogramEdges(d.Max)
	i := 0
	for e := 0; e+1 < len(edges); e++ {
		b := Bin{From: edges[e], To: edges[e+1]}
		for i < len(values) && values[i] < b.To {
			b.Count++
			i++
		}
		d.Histogram = append(d.Histogram, b)
	}
	return d
}

// histogramEdges grows by about a fifth: 1, 2, 3 … then wider.
func histogramEdges(to int) []int {
	edges := []int{1}
	for e := 1; e <= to; {
		e = max(e+1, e*6/5)
		edges = append(edges, e)
	}
	return edges
}

func (d Distribution) String() string {
	return fmt.Sprintf("p50 %d, p90 %d, p99 %d, p99.9 %d, max %d of %d", d.P50, d.P90, d.P99, d.P999, d.Max, d.Count)
}
