package costmodel

import (
	"fmt"
	"strings"

	"github.com/shopspring/decimal"
)

// Providers of stores and placements.
const (
	GCP      = "gcp"
	AWS      = "aws"
	Own      = "own" // a server of one's own, or any host that is not billed by request
	anywhere = "any"
)

// A Line is one item of a bill.
type Line struct {
	What     string          `json:"what"`
	Quantity decimal.Decimal `json:"quantity"`
	Unit     string          `json:"unit"`
	Month    Money           `json:"month"`      // without free quantities
	WithFree Money           `json:"month_free"` // with them
	Figure   *Figure         `json:"-"`
	Price    string          `json:"price"` // the figure's id; "" = there is none for the region
}

// A bill collects lines.
type bill struct {
	book     *Book
	provider string
	region   string
	lines    []Line
}

// add prices a quantity by a figure. A figure that is missing makes it unknown.
func (b *bill) add(what, id string, quantity decimal.Decimal) {
	f := b.book.Find(id, b.provider, b.region)
	l := Line{What: what, Quantity: quantity, Unit: "unknown", Month: f.Cost(quantity, false), WithFree: f.Cost(quantity, true), Figure: f}
	if f != nil {
		l.Unit, l.Price = f.Unit, f.ID
	}
	b.lines = append(b.lines, l)
}

// unknown adds an item whose quantity nobody knows.
func (b *bill) unknown(what string) {
	b.lines = append(b.lines, Line{What: what, Unit: "unknown", Month: Unknown, WithFree: Unknown})
}

// limit looks up a limit; nil is unknown.
func (b *bill) limit(id string) *Figure {
	if f := b.book.Find(id, b.provider, b.region); f != nil && f.Known {
		return f
	}
	return nil
}

func total(lines []Line) (month, free Money) {
	for _, l := range lines {
		month, free = month.Plus(l.Month), free.Plus(l.WithFree)
	}
	return month, free
}

// An offer is one way of paying for one store.
type offer struct {
	id, title string
	store     string // whose measurement counts
	provider  string
	shared    bool
	// ceiling is the limit of writes a second to one record, "" if none is
	// published; wholeDatabase: it bounds all records together.
	ceiling       string
	wholeDatabase bool
	bill          func(b *bill, q *Quantity, t *Traffic) (impossible string)
	note          string
}

var (
	gigabyte = decimal.New(1_000_000_000, 0)
	gibibyte = decimal.New(1<<30, 0)
)

// fixedPlans of Upstash, cheapest first.
var fixedPlans = []string{"250mb", "1gb", "5gb", "10gb", "50gb", "100gb", "500gb"}

// offers lists every way, in the order in which ties are broken: what needs no
// attention first.
func offers() []offer {
	return []offer{
		{id: "upstash-free", title: "Upstash, free plan", store: "upstash", provider: anywhere, shared: true, ceiling: "upstash.commands_per_second", wholeDatabase: true,
			bill: upstashFree, note: "one database; archived after 30 days without a command"},
		{id: "dynamodb-on-demand", title: "DynamoDB, on demand", store: "dynamodb", provider: AWS, shared: true, ceiling: "dynamodb.partition_writes_per_second",
			bill: func(b *bill, q *Quantity, _ *Traffic) string {
				b.add("writes", "dynamodb.ondemand.write", q.Writes.Add(q.Expiries))
				b.add("reads", "dynamodb.ondemand.read", q.Reads)
				return ""
			}, note: "deletes by TTL are free; a new table takes 4,000 writes a second"},
		{id: "dynamodb-provisioned", title: "DynamoDB, provisioned", store: "dynamodb", provider: AWS, shared: true, ceiling: "dynamodb.partition_writes_per_second",
			bill: dynamoProvisioned, note: "units for the busiest second, all month; beyond them writes are throttled"},
		{id: "firestore-standard", title: "Firestore, Standard", store: "firestore", provider: GCP, shared: true, ceiling: "firestore.document_writes_per_second",
			bill: func(b *bill, q *Quantity, _ *Traffic) string {
				b.add("writes", "firestore.standard.write", q.Writes.Add(q.Expiries))
				b.add("reads", "firestore.standard.read", q.Reads)
				b.add("deletes by TTL", "firestore.standard.ttl_delete", q.Records)
				return ""
			}, note: "free quantities are for each day, and for one database of a project"},
		{id: "firestore-enterprise", title: "Firestore, Enterprise", store: "firestore", provider: GCP, shared: true, ceiling: "firestore.document_writes_per_second",
			bill: func(b *bill, q *Quantity, _ *Traffic) string {
				b.add("writes", "firestore.enterprise.write_unit", q.Writes.Add(q.Expiries))
				b.add("reads", "firestore.enterprise.read_unit", q.Reads)
				b.add("deletes by TTL", "firestore.enterprise.ttl_delete", q.Records)
				return ""
			}, note: "that an increment bills no read unit was not found stated: look at the first bill"},
		{id: "upstash-payg", title: "Upstash, pay as you go", store: "upstash", provider: anywhere, shared: true, ceiling: "upstash.commands_per_second", wholeDatabase: true,
			bill: func(b *bill, q *Quantity, _ *Traffic) string {
				b.add("commands", "upstash.payg.command", q.Operations())
				b.traffic("bandwidth", "upstash.payg.bandwidth", q)
				return ""
			}, note: "an instance that sees thousands of clients may repeat an expiry at a client's second and third page: up to two commands more for each client and day"},
		{id: "upstash-fixed", title: "Upstash, fixed plan", store: "upstash", provider: anywhere, shared: true, ceiling: "upstash.commands_per_second", wholeDatabase: true,
			bill: upstashFixed, note: "the smallest plan whose bandwidth is enough"},
		{id: "elasticache-node", title: "ElastiCache, one t4g.micro", store: "redis", provider: AWS, shared: true, bill: node("elasticache.node.micro"),
			note: "no replica; the functions must be in its network"},
		{id: "elasticache-serverless", title: "ElastiCache Serverless, Valkey", store: "redis", provider: AWS, shared: true,
			bill: func(b *bill, q *Quantity, _ *Traffic) string {
				least := b.limit("elasticache.serverless.minimum")
				if least == nil {
					b.unknown("storage")
				} else {
					b.add("storage, the least that is billed", "elasticache.serverless.storage", least.Value.Mul(Hours))
				}
				b.add("ECPUs", "elasticache.serverless.ecpu", q.Operations())
				return ""
			}, note: "a command of up to 1 KB is one ECPU"},
		{id: "memorystore-valkey", title: "Memorystore for Valkey, custom-pico", store: "redis", provider: GCP, shared: true, bill: node("memorystore.valkey.pico"),
			note: "one node; functions reach it by direct VPC egress"},
		{id: "memorystore-redis", title: "Memorystore for Redis, Basic 1 GB", store: "redis", provider: GCP, shared: true, bill: node("memorystore.redis.basic1"),
			note: "no replica"},
		{id: "memory", title: "memory of one instance", store: "memory", provider: Own, bill: func(*bill, *Quantity, *Traffic) string { return "" },
			note: "the limit holds for each instance apart, and counts end with it"},
	}
}

func node(id string) func(*bill, *Quantity, *Traffic) string {
	return func(b *bill, _ *Quantity, _ *Traffic) string {
		b.add("node", id, Hours)
		return ""
	}
}

// traffic prices the bytes between Stile and the store.
func (b *bill) traffic(what, id string, q *Quantity) {
	if !q.BytesKnown {
		b.unknown(what)
		return
	}
	b.add(what, id, q.BytesOut.Add(q.BytesIn).DivRound(gigabyte, 9))
}

func upstashFree(b *bill, q *Quantity, _ *Traffic) string {
	b.add("plan", "upstash.free", one)
	most, band := b.limit("upstash.free.commands"), b.limit("upstash.free.bandwidth")
	switch {
	case most == nil || band == nil || !q.BytesKnown:
		return "its limits or the bytes are unknown"
	case q.Operations().GreaterThan(most.Value):
		return fmt.Sprintf("it has %s commands a month, and %s are needed", thousands(most.Value.String()), thousands(q.Operations().StringFixed(0)))
	case q.BytesOut.Add(q.BytesIn).DivRound(gigabyte, 9).GreaterThan(band.Value):
		return "its bandwidth is not enough"
	}
	return ""
}

func upstashFixed(b *bill, q *Quantity, t *Traffic) string {
	if !q.BytesKnown {
		b.unknown("plan")
		return ""
	}
	need := q.BytesOut.Add(q.BytesIn).DivRound(gigabyte, 9)
	if rate, most := perNavigation(q, t).Mul(t.PeakPerSecond), b.limit("upstash.commands_per_second"); most != nil && rate.GreaterThan(most.Value) {
		b.add("plan", "upstash.fixed."+fixedPlans[len(fixedPlans)-1], one)
		return fmt.Sprintf("it takes %s commands a second, and the busiest second needs %s", thousands(most.Value.String()), thousands(rate.StringFixed(0)))
	}
	for _, plan := range fixedPlans {
		band := b.limit("upstash.fixed." + plan + ".bandwidth")
		if band != nil && need.LessThanOrEqual(band.Value) {
			b.add("plan of "+strings.ToUpper(plan), "upstash.fixed."+plan, one)
			return ""
		}
	}
	b.add("plan", "upstash.fixed."+fixedPlans[len(fixedPlans)-1], one)
	return fmt.Sprintf("no plan has the %s GB of bandwidth that are needed", thousands(need.StringFixed(0)))
}

// dynamoProvisioned buys units for the busiest second, since counts must not wait.
func dynamoProvisioned(b *bill, q *Quantity, t *Traffic) string {
	units := func(n decimal.Decimal) decimal.Decimal {
		if t.Navigations == 0 {
			return one
		}
		return decimal.Max(one, n.DivRound(decimal.New(t.Navigations, 0), 12).Mul(t.PeakPerSecond).Ceil())
	}
	b.add("write units", "dynamodb.provisioned.write", units(q.Writes.Add(q.Expiries)).Mul(Hours))
	if q.Reads.IsPositive() {
		b.add("read units", "dynamodb.provisioned.read", units(q.Reads).Mul(Hours))
	}
	return ""
}

// perNavigation is the operations of one navigation; 0 without any.
func perNavigation(q *Quantity, t *Traffic) decimal.Decimal {
	if t.Navigations == 0 {
		return decimal.Zero
	}
	return q.Operations().DivRound(decimal.New(t.Navigations, 0), 9)
}
