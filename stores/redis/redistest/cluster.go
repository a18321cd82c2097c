package redistest

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stilehq/stile/internal/process"
	"github.com/stilehq/stile/internal/require"
)

// A Cluster is three masters that share the slots.
type Cluster struct {
	Nodes []*Server
}

// StartCluster starts a cluster of three nodes and waits until all agree.
func StartCluster(tb testing.TB) *Cluster {
	tb.Helper()
	path := binary()
	require.Server(tb, "redis-cluster", path != "", hint)
	c := &Cluster{}
	for range 3 {
		bus := process.FreeAddr(tb)
		_, port, _ := net.SplitHostPort(bus)
		c.Nodes = append(c.Nodes, start(tb, path, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
			"--cluster-port", port, "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"))
	}
	const slots = 16384
	for i, n := range c.Nodes {
		n.Do("CLUSTER", "ADDSLOTSRANGE", i*slots/3, (i+1)*slots/3-1)
		n.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	first, port, _ := net.SplitHostPort(c.Nodes[0].Addr)
	busPort := c.Nodes[0].arg("--cluster-port")
	for _, n := range c.Nodes[1:] {
		n.Do("CLUSTER", "MEET", first, port, busPort)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if c.agrees() {
			return c
		}
		if time.Now().After(end) {
			tb.Fatal("redistest: the cluster did not come together")
		}
	}
}

// AddReplica starts a further node that replicates master, and waits until master
// has it and all nodes know it.
func (c *Cluster) AddReplica(master *Server) *Server {
	tb := master.tb
	tb.Helper()
	bus := process.FreeAddr(tb)
	_, port, _ := net.SplitHostPort(bus)
	r := start(tb, binary(), "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
		"--cluster-port", port, "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no",
		"--repl-diskless-sync-delay", "0")
	id := master.ID()
	host, clientPort := master.HostPort()
	r.Do("CLUSTER", "MEET", host, clientPort, master.arg("--cluster-port"))
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		// It must know the master before it may follow it; then the others must know it.
		_, err := r.admin.ClusterReplicate(context.Background(), id).Result()
		if err == nil {
			break
		}
		if time.Now().After(end) {
			tb.Fatalf("redistest: the new node does not follow: %v", err)
		}
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		known := strings.Contains(master.Do("INFO", "replication").(string), "state=online")
		for _, n := range c.Nodes {
			known = known && strings.Contains(n.Do("CLUSTER", "NODES").(string), "slave "+id)
		}
		if known {
			return r
		}
		if time.Now().After(end) {
			tb.Fatal("redistest: the replica is not known to all")
		}
	}
}

// agrees reports whether every node sees all slots served by three nodes.
func (c *Cluster) agrees() bool {
	for _, n := range c.Nodes {
		info, err := n.admin.ClusterInfo(context.Background()).Result()
		if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") ||
			!strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(len(c.Nodes))) {
			return false
		}
		//lint:ignore SA1019 CLUSTER SHARDS needs Redis 7; CLUSTER SLOTS is served by every version of Redis and Valkey
		ranges, err := n.admin.ClusterSlots(context.Background()).Result()
		if err != nil || len(ranges) != len(c.Nodes) {
			return false
		}
	}
	return true
}

// Addrs returns the nodes' addresses.
func (c *Cluster) Addrs() []string {
	var list []string
	for _, n := range c.Nodes {
		list = append(list, n.Addr)
	}
	return list
}

// Client returns a client of the whole cluster.
func (c *Cluster) Client(tb testing.TB) *goredis.ClusterClient {
	client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: c.Addrs(), Protocol: 2, DisableIdentity: true})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// Calls adds up the nodes' Calls.
func (c *Cluster) Calls() map[string]int64 {
	sum := make(map[string]int64)
	for _, n := range c.Nodes {
		for name, calls := range n.Calls() {
			sum[name] += calls
		}
	}
	return sum
}

// ID returns the node id of the server in its cluster.
func (s *Server) ID() string {
	s.tb.Helper()
	id, _ := s.Do("CLUSTER", "MYID").(string)
	return id
}

// arg returns the value of a command line argument.
func (s *Server) arg(name string) string {
	for i, a := range s.args {
		if a == name && i+1 < len(s.args) {
			return s.args[i+1]
		}
	}
	return ""
}
