package dynamodb

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/dynamodb/dynamodbtest"
	"github.com/stilehq/stile/stores/storetest"
)

// harness runs the conformance suite on a server that has the table.
func harness(server *dynamodbtest.Server) storetest.Harness {
	client := server.Client()
	return storetest.Harness{
		Open:      func(tb testing.TB) core.Store { return openSite(tb, server.Endpoint(), "conformance") },
		Backend:   server.Addr,
		Through:   func(tb testing.TB, proxy string) core.Store { return openSite(tb, "http://"+proxy, "conformance") },
		Slow:      true,
		BenchKeys: 1 << 12,
		Exists: func(st core.Store, row *core.Row) (bool, error) {
			found, err := lookUp(client, st.(*Store), row)
			return len(found) > 0, err
		},
		Expiry: func(st core.Store, row *core.Row) (time.Time, bool) {
			found, err := lookUp(client, st.(*Store), row)
			return time.Unix(number(found["ttl"]), 0), err == nil && found["ttl"] != nil
		},
	}
}

func testConformance(t *testing.T, server *dynamodbtest.Server) { storetest.Run(t, harness(server)) }

func BenchmarkDynalite(b *testing.B) {
	server := dynamodbtest.Start(b)
	server.CreateTable(b, table)
	storetest.Bench(b, harness(server))
}

// lookUp fetches a record as another program would.
func lookUp(client *ddb.Client, s *Store, r *core.Row) (item, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := client.GetItem(ctx, &ddb.GetItemInput{
		TableName: aws.String(table), Key: record(s.cfg.Namer.Name(r)), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}
