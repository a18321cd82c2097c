package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
)

// newClient loads the configuration as every AWS program does and returns a
// client that never retries.
func newClient(ctx context.Context, cfg *Config) (*ddb.Client, interface{ CloseIdleConnections() }, error) {
	getenv := cfg.getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	load := []func(*config.LoadOptions) error{}
	region := cfg.Region
	if cfg.local() && region == "" && getenv("AWS_REGION") == "" && getenv("AWS_DEFAULT_REGION") == "" {
		region = "us-east-1"
	}
	if region != "" {
		load = append(load, config.WithRegion(region))
	}
	switch {
	case cfg.Credentials != nil:
		load = append(load, config.WithCredentialsProvider(cfg.Credentials))
	case cfg.local() && getenv("AWS_ACCESS_KEY_ID") == "":
		load = append(load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("local", "local", "")))
	}
	loaded, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, nil, fmt.Errorf("dynamodb: the AWS configuration cannot be loaded: %w", err)
	}
	if loaded.Region == "" {
		return nil, nil, errors.New("dynamodb: no region; write dynamodb://table?region=… or set AWS_REGION")
	}
	// The loader has put AWS_CA_BUNDLE into its own client and fails if it is
	// given another one, so ours is made from it and set on the service alone.
	base, ok := loaded.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		base = awshttp.NewBuildableClient()
	}
	dial := cfg.ConnectTimeout
	if dial <= 0 {
		dial = defaultConnect
	}
	idle := 45 * time.Second
	if cfg.local() {
		// Local stand-ins run on servers that close idle connections after five
		// seconds; a request on one just then has an unknown outcome.
		idle = 2 * time.Second
	}
	base = base.WithDialerOptions(func(d *net.Dialer) { d.Timeout = dial }).
		WithTransportOptions(func(t *http.Transport) {
			t.TLSHandshakeTimeout = dial
			// Concurrent hits of one instance each hold a connection; those beyond
			// the idle ones would be dialled anew for every burst.
			t.MaxIdleConnsPerHost = 64
			// An instance that was frozen wakes up with connections that the other
			// side has dropped meanwhile. Age is told by the wall clock, so one that
			// slept longer than this is not written to.
			t.IdleConnTimeout = idle
		})
	client := ddb.NewFromConfig(loaded, func(o *ddb.Options) {
		o.Retryer = aws.NopRetryer{}
		// Its warnings would be plain text amid a log of JSON lines; what matters
		// is in the errors.
		o.Logger = logging.Nop{}
		o.HTTPClient = watchedClient{base}
		if cfg.Endpoint != "" {
			o.BaseEndpoint = aws.String(cfg.Endpoint)
		}
	})
	return client, idleCloser{base}, nil
}

// idleCloser closes the pool of a client that has no method for it.
type idleCloser struct{ client *awshttp.BuildableClient }

func (c idleCloser) CloseIdleConnections() { c.client.GetTransport().CloseIdleConnections() }

// A call watches one request. A refused dial and a connection that broke after
// the write was applied are errors of one kind to the SDK; the proof that nothing
// was applied is that the request never got a connection.
type call struct{ sent atomic.Bool }

type callKey struct{}

// watch returns a context whose request to DynamoDB reports to the call.
func watch(ctx context.Context) (context.Context, *call) {
	c := new(call)
	return context.WithValue(ctx, callKey{}, c), c
}

// watchedClient is the service's HTTP client. It is not the one that fetches
// credentials, whose requests prove nothing about the row.
type watchedClient struct{ ddb.HTTPClient }

func (w watchedClient) Do(req *http.Request) (*http.Response, error) {
	if c, ok := req.Context().Value(callKey{}).(*call); ok {
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { c.sent.Store(true) },
		}))
	}
	return w.HTTPClient.Do(req)
}
