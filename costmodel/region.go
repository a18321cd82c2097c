package costmodel

import (
	"regexp"

	"github.com/shopspring/decimal"
)

// awsRegion is how AWS writes regions: eu-west-1. Google writes europe-west1, and
// nam5 for several at once.
var awsRegion = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-\d$`)

// Regions sorts a region's name to its provider; the other provider's is "", which
// means the default.
func Regions(name string) (gcp, aws string) {
	if awsRegion.MatchString(name) {
		return "", name
	}
	return name, ""
}

// PageCost reckons what the origin pays for one page from its billed time and its
// bytes, at the prices of in.On: one vCPU with 256 MiB on Cloud Run, 1 GB on
// Lambda, and egress in the first tier. Unknown elsewhere. Free quantities are left
// out: the crawler uses up what people would have had.
func PageCost(in Input, millis, bytes int64) Money {
	if in.GCPRegion == "" {
		in.GCPRegion = "us-central1"
	}
	if in.AWSRegion == "" {
		in.AWSRegion = "us-east-1"
	}
	b := &bill{book: in.Book, provider: in.On, region: in.region(in.On)}
	seconds := decimal.New(millis, 0).DivRound(thousand, 9)
	switch in.On {
	case GCP:
		b.add("request", "run.request", one)
		b.add("CPU", "run.cpu", seconds)
		b.add("memory", "run.memory", seconds.Mul(quarter))
		b.add("egress", "gcp.egress", decimal.New(bytes, 0).DivRound(gibibyte, 18))
	case AWS:
		b.add("request", "lambda.request", one)
		b.add("time", "lambda.duration", seconds)
		b.add("egress", "aws.egress", decimal.New(bytes, 0).DivRound(gigabyte, 18))
	default:
		return Unknown
	}
	month, _ := total(b.lines)
	return month
}
