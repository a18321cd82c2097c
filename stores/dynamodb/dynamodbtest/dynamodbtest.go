// Package dynamodbtest runs dynalite, a DynamoDB server made for tests, on a free
// port of 127.0.0.1, and makes tables in it. Dynalite keeps everything in memory,
// deletes nothing (TTL reads as off), and leaves the record out of a failed
// condition's answer.
//
// The version is pinned beside this file: `npm ci` in this folder installs it
// where Find looks.
package dynamodbtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/stilehq/stile/internal/process"
	"github.com/stilehq/stile/internal/require"
)

// BinVariable names the environment variable that says where dynalite's script
// is (node_modules/.bin/dynalite of some installation).
const BinVariable = "STILE_DYNALITE"

// A Server is one running dynalite.
type Server struct {
	Addr    string // host:port
	bin     string
	running *process.Process
}

// Find returns dynalite's script: the one that STILE_DYNALITE names, else the one
// installed beside this file, else the one in PATH. It reports false when there
// is none, or no Node.js to run it.
func Find() (bin string, found bool) {
	if _, err := exec.LookPath("node"); err != nil {
		return "", false
	}
	if bin = os.Getenv(BinVariable); bin != "" {
		_, err := os.Stat(bin)
		return bin, err == nil
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		bin = filepath.Join(filepath.Dir(file), "node_modules", ".bin", "dynalite")
		if _, err := os.Stat(bin); err == nil {
			return bin, true
		}
	}
	bin, err := exec.LookPath("dynalite")
	return bin, err == nil
}

// Start starts a server that ends with the test, or skips the test by the rule of
// package require. Share one between subtests, each with a table or a site name
// of its own.
func Start(tb testing.TB) *Server {
	tb.Helper()
	bin, found := Find()
	require.Server(tb, "dynamodb", found, "install Node.js and run `npm ci` in stores/dynamodb/dynamodbtest, or set "+BinVariable)
	s := &Server{bin: bin}
	process.Serve(tb, s.run)
	tb.Cleanup(s.Kill)
	return s
}

// Endpoint returns the server's URL, for the parameter endpoint of a store URL.
func (s *Server) Endpoint() string { return "http://" + s.Addr }

// Run starts the server on its address and waits until it answers. Start has done
// so already: call it after Kill, to bring the server back empty.
func (s *Server) Run(tb testing.TB) {
	tb.Helper()
	if err := s.run(s.Addr); err != nil {
		tb.Fatal(err)
	}
}

func (s *Server) run(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	p, err := process.Launch(exec.Command("node", s.bin, "--host", "127.0.0.1", "--port", port,
		"--createTableMs", "5", "--deleteTableMs", "5", "--updateTableMs", "5"))
	if err != nil {
		return err
	}
	if err := p.Await(time.Minute, process.Answers("http://"+addr)); err != nil {
		p.Kill()
		return fmt.Errorf("dynamodbtest: %w", err)
	}
	s.Addr, s.running = addr, p
	return nil
}

// Kill ends the server at once and waits for its end. A second call does nothing.
func (s *Server) Kill() { s.running.Kill() }

// Signal sends sig to the server, for example SIGSTOP and SIGCONT.
func (s *Server) Signal(sig os.Signal) error { return s.running.Signal(sig) }

// Client returns a client of the SDK for looking at records beside a store.
func (s *Server) Client() *ddb.Client {
	return ddb.New(ddb.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(s.Endpoint()),
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

// CreateTable makes a table as a store needs it: partition key pk of type string.
func (s *Server) CreateTable(tb testing.TB, name string) {
	tb.Helper()
	s.CreateTableWithKey(tb, name, "pk", types.ScalarAttributeTypeS)
}

// CreateTableWithKey makes a table with another key, for tests of probes.
func (s *Server) CreateTableWithKey(tb testing.TB, name, key string, kind types.ScalarAttributeType) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	client := s.Client()
	_, err := client.CreateTable(ctx, &ddb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(key), AttributeType: kind}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(key), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	for {
		out, err := client.DescribeTable(ctx, &ddb.DescribeTableInput{TableName: aws.String(name)})
		if err != nil {
			tb.Fatal(err)
		}
		if out.Table.TableStatus == types.TableStatusActive {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
