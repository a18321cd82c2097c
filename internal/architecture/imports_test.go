// Package architecture holds the house's plan against its walls: which room may
// import which.
package architecture

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

const module = "github.com/stilehq/stile"

// pkg is what `go list` knows of a package.
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

func list(t *testing.T, patterns ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e", "-deps", "-json=ImportPath,Standard,Imports,Deps"}, patterns...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// room is the part of the house a package of ours is in: its path within the
// module.
func room(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func under(r, dir string) bool { return r == dir || strings.HasPrefix(r, dir+"/") }

// sdks belong to one room each: a program that does not have the room must not pay
// for the library.
var sdks = map[string]string{
	"github.com/redis/rueidis":       "stores/redis",
	"github.com/redis/go-redis":      "stores/redis", // its tests' own connections
	"cloud.google.com/go/firestore":  "stores/firestore",
	"github.com/aws/aws-sdk-go-v2":   "stores/dynamodb",
	"github.com/aws/aws-lambda-go":   "adapters/lambda",
	"github.com/GoogleCloudPlatform": "adapters/gcp",
	"github.com/alecthomas/kong":     "cmd",
	"github.com/oschwald/maxminddb":  "identity",
	"github.com/sony/gobreaker":      "stores/wrap",
	"github.com/golang-jwt":          "identity",
	"github.com/schollz/progressbar": "cmd",
	"github.com/dunglas/httpsfv":     "crawlers",
	"google.golang.org/grpc":         "stores/firestore",
	"google.golang.org/api":          "stores/firestore",
	"google.golang.org/genproto":     "stores/firestore",
	"google.golang.org/protobuf":     "stores/firestore",
	"github.com/googleapis/gax-go":   "stores/firestore",
	"github.com/aws/smithy-go":       "stores/dynamodb",
}

// TestImportsPointOneWay: cmd and adapters -> wire -> policy, crawlers,
// identity, stores -> core; and a store's SDK is imported by that store only.
func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	// What each room may import of ours; what is not listed may import nothing.
	may := map[string][]string{
		"core/rows":                 {},
		"core":                      {"core"},
		"policy":                    {"core"},
		"crawlers":                  {"core", "crawlers"},
		"identity":                  {"core", "identity"},
		"stores/storetest":          {"core", "stores/storetest", "internal/require"},
		"stores/memory":             {"core"},
		"stores/redis":              {"core", "stores/redis", "internal/process", "internal/require"},
		"stores/upstash":            {"core", "stores/redis/bitfield", "stores/upstash", "internal/require", "stores/redis/redistest"},
		"stores/firestore":          {"core", "stores/firestore", "internal/process", "internal/require"},
		"stores/dynamodb":           {"core", "stores/dynamodb", "internal/process", "internal/require"},
		"stores/wrap":               {"core"},
		"stores/open":               {"core", "stores/open"},
		"stores/open/openmemory":    {"core", "stores/open", "stores/memory"},
		"stores/open/openredis":     {"core", "stores/open", "stores/redis"},
		"stores/open/openupstash":   {"core", "stores/open", "stores/upstash"},
		"stores/open/openfirestore": {"core", "stores/open", "stores/firestore"},
		"stores/open/opendynamodb":  {"core", "stores/open", "stores/dynamodb"},
		"scripts":                   {""},
		"docs/recipes":              {""},
		"terraform":                 {""},
		"edge":                      {"core", "policy"},
		"stores/all":                {"core", "stores"},
		"answer":                    {"core"},
		"hitlog":                    {"core"},
		"wire":                      {"core", "policy", "crawlers", "identity", "stores", "answer", "hitlog", "wire"},
		"adapters":                  {"core", "answer", "hitlog", "wire", "adapters", "policy", "stores", "crawlers", "identity"},
		"sizing":                    {"core", "policy", "sizing", "hitlog", "stores/memory", "crawlers"},
		"costmodel":                 {"core", "costmodel"},
		"bench":                     {"core", "stores", "bench", "internal/require"},
		"cmd":                       {""},
		"e2e":                       {""},
		"internal":                  {""},
		".":                         {"adapters", "wire", "stores", "core"},
	}
	ours := 0
	for _, p := range list(t, "./...") {
		r, ok := room(p.ImportPath)
		if !ok {
			continue
		}
		ours++
		best := ""
		for name := range may {
			if under(r, name) && len(name) > len(best) {
				best = name
			}
		}
		if best == "" {
			t.Errorf("%s is in no room of the plan", r)
			continue
		}
		for _, imp := range p.Imports {
			if to, ok := room(imp); ok {
				allowed := false
				for _, a := range may[best] {
					allowed = allowed || a == "" || under(to, a)
				}
				if !allowed {
					t.Errorf("%s imports %s, which its room may not", r, to)
				}
				if to == "." {
					t.Errorf("%s imports the Cloud Run function, which nothing may", r)
				}
			}
			for sdk, owner := range sdks {
				if under(imp, sdk) && !under(r, owner) && !under(r, "e2e") && !strings.HasSuffix(r, "test") && !under(r, "internal") && r != "." {
					t.Errorf("%s imports %s, which belongs to %s", r, imp, owner)
				}
			}
			if under(r, "core") && strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") && !strings.HasPrefix(imp, module) {
				t.Errorf("core imports %s: the standard library is all it may", imp)
			}
		}
	}
	if ours < 10 {
		t.Fatalf("only %d packages of ours were seen", ours)
	}
}

// TestCoreReachesNoNetwork: not even through the standard library.
func TestCoreReachesNoNetwork(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "./core", "./core/rows") {
		switch p.ImportPath {
		case "net", "net/http", "os/exec", "database/sql", "log", "log/slog", "crypto/tls":
			t.Errorf("core reaches %s", p.ImportPath)
		}
	}
}

// links lists which stores a program links.
func links(t *testing.T, program string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, p := range list(t, program) {
		if r, ok := room(p.ImportPath); ok && under(r, "stores") {
			out[path.Base(r)] = true
		}
	}
	return out
}

// TestDependenciesHaveReasons: every direct dependency stands in
// docs/dependencies.md, and nothing else does.
func TestDependenciesHaveReasons(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for line := range strings.Lines(string(mod)) {
		f := strings.Fields(line)
		if len(f) >= 2 && strings.Contains(f[0], ".") && strings.HasPrefix(f[1], "v") && !strings.Contains(line, "// indirect") {
			direct[f[0]] = true
		}
	}
	if len(direct) < 10 {
		t.Fatalf("only %d direct dependencies were read", len(direct))
	}
	table := string(doc)
	for m := range direct {
		if strings.Contains(table, "`"+m+"`") || strings.HasPrefix(m, "github.com/aws/aws-sdk-go-v2/") && strings.Contains(table, "`"+strings.TrimPrefix(m, "github.com/aws/aws-sdk-go-v2/")+"`") {
			continue
		}
		t.Errorf("%s is used without a reason in docs/dependencies.md", m)
	}
}
