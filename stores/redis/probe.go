package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/stilehq/stile/core"
)

// What [Store.Probe] may report; test with errors.Is.
var (
	ErrUnreachable = errors.New("redis: the server cannot be reached")
	ErrAuth        = errors.New("redis: wrong user or password, or AUTH is needed")
	ErrTLS         = errors.New("redis: no TLS connection (rediss:// against a plain server, or an unknown certificate)")
	ErrReplica     = errors.New("redis: the server is a read-only replica")
	ErrMemoryFull  = errors.New("redis: maxmemory is reached and nothing may be evicted, so the server refuses to count")
	ErrNotCluster  = errors.New("redis: cluster=1 does not match the server")

	// ErrEviction and ErrClock are warnings: the store works, but counters may
	// be dropped early, or expire early or late.
	ErrEviction = errors.New("redis: the eviction policy may drop counters; set maxmemory-policy noeviction")
	ErrClock    = errors.New("redis: the server's clock and ours differ by more than 2 s")
)

// maxSkew is the difference of clocks beyond which a probe warns.
const maxSkew = 2 * time.Second

// IsWarning reports whether err, from Probe, holds warnings only.
func IsWarning(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && !errors.Is(err, core.ErrNotApplied) {
		all := joined.Unwrap()
		for _, e := range all {
			if !errors.Is(e, ErrEviction) && !errors.Is(e, ErrClock) {
				return false
			}
		}
		return len(all) > 0
	}
	return errors.Is(err, ErrEviction) || errors.Is(err, ErrClock)
}

// Probe connects to the server, in a cluster to every master, and looks for what
// would make counting fail: a wrong password, refused TLS, a read-only replica,
// full memory, an eviction policy that may drop counters, a clock that is off.
// It returns all findings at once, nil if there are none, and changes nothing.
// What the user may not ask (INFO, TIME; managed services and ACLs differ) is not
// judged. Commands that Probe sends are not counted by Commands.
func (s *Store) Probe(ctx context.Context) error {
	if s.closed.Load() {
		return notApplied(errClosed)
	}
	if err := s.nodes.ready(ctx); err != nil {
		return s.explain(err)
	}
	var errs []error
	for _, l := range s.nodes.masters() {
		if err := s.probe(ctx, l); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// probe looks at one server.
func (s *Store) probe(ctx context.Context, l *lane) error {
	before := time.Now()
	answer, err := l.ask(ctx, "TIME")
	after := time.Now()
	if text, ok := reply(err); err != nil && (!ok || !strings.HasPrefix(text, "NOPERM")) {
		return s.explain(err)
	}
	var server time.Time
	if err == nil {
		server, err = clock(answer)
	}
	var errs []error
	if err == nil {
		// Redis answers in microseconds; the trip there and back is no skew.
		if d := server.Sub(after); d > maxSkew {
			errs = append(errs, fmt.Errorf("%w (it is ahead by %s)", ErrClock, d.Round(time.Millisecond)))
		} else if d := before.Sub(server); d > maxSkew {
			errs = append(errs, fmt.Errorf("%w (it is behind by %s)", ErrClock, d.Round(time.Millisecond)))
		}
	}
	// Separate sections: several in one INFO need Redis 7.
	for _, section := range []string{"replication", "memory", "cluster"} {
		answer, err := l.ask(ctx, "INFO", section)
		if err != nil {
			continue
		}
		text, err := answer.ToString()
		if err != nil {
			continue
		}
		errs = append(errs, s.judge(fields(text))...)
	}
	return errors.Join(errs...)
}

// judge reads the fields of one section of INFO.
func (s *Store) judge(info map[string]string) (errs []error) {
	if info["role"] == "slave" && info["slave_read_only"] != "0" {
		errs = append(errs, ErrReplica)
	}
	limit, _ := strconv.ParseInt(info["maxmemory"], 10, 64)
	used, _ := strconv.ParseInt(info["used_memory"], 10, 64)
	policy := info["maxmemory_policy"]
	switch {
	case limit > 0 && policy != "" && policy != "noeviction":
		errs = append(errs, fmt.Errorf("%w (it is %s)", ErrEviction, policy))
	case limit > 0 && used >= limit:
		errs = append(errs, fmt.Errorf("%w (%d of %d bytes)", ErrMemoryFull, used, limit))
	}
	if on, ok := info["cluster_enabled"]; ok && (on == "1") != s.cfg.Cluster {
		if s.cfg.Cluster {
			errs = append(errs, fmt.Errorf("%w (it is a single server)", ErrNotCluster))
		} else {
			errs = append(errs, fmt.Errorf("%w (it is a cluster: add cluster=1)", ErrNotCluster))
		}
	}
	return errs
}

// explain puts a connection's error into words that say what to do.
func (s *Store) explain(err error) error {
	text := err.Error()
	kind := ErrUnreachable
	switch {
	case errors.Is(err, errTLS):
		kind = ErrTLS
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "NOAUTH"),
		strings.Contains(text, "invalid password"), strings.Contains(text, "without any password configured"):
		kind = ErrAuth
	case strings.Contains(text, "cluster support disabled"):
		kind = ErrNotCluster
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// clock reads the reply to TIME: seconds and microseconds.
func clock(m rueidis.RedisMessage) (time.Time, error) {
	list, err := m.ToArray()
	if err != nil {
		return time.Time{}, err
	}
	if len(list) != 2 {
		return time.Time{}, errors.New("TIME cannot be read")
	}
	seconds, err1 := list[0].AsInt64()
	micros, err2 := list[1].AsInt64()
	return time.Unix(seconds, micros*1000), errors.Join(err1, err2)
}

// fields reads "name:value" lines.
func fields(text string) map[string]string {
	m := make(map[string]string)
	for line := range strings.SplitSeq(text, "\n") {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}
