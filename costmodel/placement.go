package costmodel

import "github.com/shopspring/decimal"

// Assumptions are quantities that nobody has measured here. They are printed with
// the result, and each has a flag. Zero values mean the defaults.
type Assumptions struct {
	HoldMillis   int64 `json:"origin_ms"`     // how long an origin takes, while a proxy holds the request; 0 = 300
	DecideMillis int64 `json:"authorizer_ms"` // billed for one authorizer call; 0 = 10
	PageBytes    int64 `json:"page_bytes"`    // of an answer; 0 = 50,000
	LogBytes     int64 `json:"log_bytes"`     // of a line of the hit log; 0 = 600
	Requests     int64 `json:"requests"`      // that reach Stile for each navigation; 0 = 1 (only pages are routed to it)
	Instances    int64 `json:"instances"`     // of Stile; 0 = 4
}

func (a Assumptions) withDefaults() Assumptions {
	set := func(n *int64, value int64) {
		if *n <= 0 {
			*n = value
		}
	}
	set(&a.HoldMillis, 300)
	set(&a.DecideMillis, 10)
	set(&a.PageBytes, 50_000)
	set(&a.LogBytes, 600)
	set(&a.Requests, 1)
	set(&a.Instances, 4)
	return a
}

// A placement is where Stile runs.
type placement struct {
	id, title, provider string
	bill                func(b *bill, calls decimal.Decimal, a *Assumptions)
}

var (
	million  = decimal.New(1_000_000, 0)
	thousand = decimal.New(1000, 0)
	eighth   = decimal.New(125, -3) // GB of a function
	quarter  = decimal.New(25, -2)  // GiB of an instance
)

func placements() []placement {
	return []placement{
		{"function-url", "Lambda function URL before the origin", AWS, func(b *bill, calls decimal.Decimal, a *Assumptions) {
			b.add("function URL", "lambda.url", calls)
			lambda(b, calls, a.HoldMillis)
			awsLog(b, calls, a)
		}},
		{"http-authorizer", "authorizer of an API Gateway HTTP API", AWS, func(b *bill, calls decimal.Decimal, a *Assumptions) {
			b.add("HTTP API", "apigateway.http", calls)
			lambda(b, calls, a.DecideMillis)
			awsLog(b, calls, a)
		}},
		{"rest-authorizer", "authorizer of an API Gateway REST API", AWS, func(b *bill, calls decimal.Decimal, a *Assumptions) {
			b.add("REST API", "apigateway.rest", calls)
			lambda(b, calls, a.DecideMillis)
			awsLog(b, calls, a)
		}},
		{"alb", "Lambda behind a load balancer, before the origin", AWS, func(b *bill, calls decimal.Decimal, a *Assumptions) {
			b.add("load balancer", "aws.alb.hour", Hours)
			// An LCU takes 1 GB an hour; at least one is reckoned for each hour.
			data := calls.Mul(decimal.New(a.PageBytes, 0)).DivRound(gigabyte, 9)
			b.add("load balancer's LCUs", "aws.alb.lcu", decimal.Max(Hours, data))
			lambda(b, calls, a.HoldMillis)
			awsLog(b, calls, a)
		}},
		{"run", "Cloud Run function before the origin", GCP, func(b *bill, calls decimal.Decimal, a *Assumptions) {
			run(b, calls, a)
		}},
		{"run-lb", "Cloud Run behind a load balancer, before the origin", GCP, func(b *bill, calls decimal.Decimal, a *Assumptions) {
			b.add("load balancer", "gcp.alb.rule", Hours)
			b.add("load balancer's data", "gcp.alb.data", calls.Mul(decimal.New(a.PageBytes, 0)).DivRound(gibibyte, 9))
			run(b, calls, a)
		}},
		{"own", "beside the origin, on a machine that is there anyway", Own, func(*bill, decimal.Decimal, *Assumptions) {}},
	}
}

func lambda(b *bill, calls decimal.Decimal, millis int64) {
	b.add("Lambda requests", "lambda.request", calls)
	b.add("Lambda time, 128 MB", "lambda.duration", calls.Mul(decimal.New(millis, 0)).DivRound(thousand, 9).Mul(eighth))
}

// run reckons one request at a time, in steps of 100 ms: what a quiet site pays. A
// busy one shares an instance among requests and pays less.
func run(b *bill, calls decimal.Decimal, a *Assumptions) {
	steps := (a.HoldMillis + 99) / 100
	seconds := calls.Mul(decimal.New(steps, 0)).DivRound(decimal.New(10, 0), 9)
	b.add("requests", "run.request", calls)
	b.add("CPU, one request at a time", "run.cpu", seconds)
	b.add("memory, 256 MiB", "run.memory", seconds.Mul(quarter))
	b.add("hit log", "gcp.logging", calls.Mul(decimal.New(a.LogBytes, 0)).DivRound(gibibyte, 9))
}

func awsLog(b *bill, calls decimal.Decimal, a *Assumptions) {
	b.add("hit log", "aws.logging", calls.Mul(decimal.New(a.LogBytes, 0)).DivRound(gigabyte, 9))
}

// reach reports whether an offer can be had from a placement's provider.
func (o *offer) reach(provider string) bool {
	return o.provider == provider || o.provider == anywhere
}
