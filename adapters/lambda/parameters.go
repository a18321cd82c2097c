package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A variable whose value begins with ssm:/ names a parameter of AWS Systems
// Manager's Parameter Store, a SecureString mostly, whose value it stands for:
// ssm:/stile/cookie, or ssm:/stile/cookie:3 for one version or label.
const parameterPrefix = "ssm:"

const (
	// parameterBudget bounds reading all of them, once, at the start of an
	// instance: the visitor that it is started for waits. STILE_SECRETS_DEADLINE says
	// another.
	parameterBudget = 2 * time.Second
	// parameterTries is how often a call is sent. Reading changes nothing, so it
	// may be repeated; many instances that start at once share the account's rate.
	parameterTries = 3
	// parametersPerCall is what GetParameters takes.
	parametersPerCall = 10
	// maxParameters bounds an answer: ten parameters of 8 KB, escaped.
	maxParameters = 1 << 20
)

// parameters reads what variables refer to.
type parameters struct {
	getenv func(string) string
	logger *slog.Logger
	client *http.Client
	now    func() time.Time
	budget time.Duration
}

// resolved returns getenv with every reference among environ, a list of
// NAME=value, replaced by what it stands for. What could not be read is "", which
// the policy and the stores call missing; the log says why, and quotes no value.
// It calls nobody when there is no reference.
func (p *parameters) resolved(ctx context.Context, environ []string) func(string) string {
	refs := map[string]string{} // variable to parameter
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if path, ok := strings.CutPrefix(value, parameterPrefix); ok && strings.HasPrefix(path, "/") {
			refs[name] = path
		}
	}
	if len(refs) == 0 {
		return p.getenv
	}
	ctx, cancel := context.WithTimeout(ctx, p.budget)
	defer cancel()
	var wanted []string
	for _, path := range refs {
		if !slices.Contains(wanted, path) {
			wanted = append(wanted, path)
		}
	}
	slices.Sort(wanted)
	found := map[string]string{}
	for some := range slices.Chunk(wanted, parametersPerCall) {
		if err := p.read(ctx, some, found); err != nil {
			p.logger.Error("stile: secrets could not be read from Parameter Store", "error", err, "parameters", some)
			continue
		}
		for _, path := range some {
			if _, ok := found[path]; !ok {
				p.logger.Error("stile: Parameter Store has no such parameter, or this role may not read it", "parameter", path)
			}
		}
	}
	return func(name string) string {
		if path, ok := refs[name]; ok {
			return found[path]
		}
		return p.getenv(name)
	}
}

// read asks for some parameters, again where that may help.
func (p *parameters) read(ctx context.Context, paths []string, into map[string]string) error {
	var err error
	for try := range parameterTries {
		if try > 0 {
			pause := time.NewTimer(time.Duration(50+rand.IntN(150*try)) * time.Millisecond)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
				return err
			}
		}
		var again bool
		if again, err = p.call(ctx, paths, into); err == nil || !again {
			return err
		}
	}
	return err
}

// call sends one GetParameters and says whether another may fare better. Its
// errors name the service's own error type at most: what else an answer holds may
// be a secret.
func (p *parameters) call(ctx context.Context, paths []string, into map[string]string) (again bool, err error) {
	region := p.getenv("AWS_REGION")
	endpoint := p.getenv("AWS_ENDPOINT_URL_SSM")
	if endpoint == "" {
		domain := "amazonaws.com"
		if strings.HasPrefix(region, "cn-") {
			domain += ".cn"
		}
		endpoint = "https://ssm." + region + "." + domain
	}
	if region == "" {
		return false, errors.New("AWS_REGION is not set: Lambda sets it")
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return false, errors.New("AWS_ENDPOINT_URL_SSM is no URL")
	}
	u.Path, u.RawQuery = "/", ""
	body, err := json.Marshal(map[string]any{"Names": paths, "WithDecryption": true})
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.budget*2/5) // so that there is time for another
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the request could not be made")
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "AmazonSSM.GetParameters")
	sign(req, body, credentials{
		key: p.getenv("AWS_ACCESS_KEY_ID"), secret: p.getenv("AWS_SECRET_ACCESS_KEY"), token: p.getenv("AWS_SESSION_TOKEN"),
	}, region, "ssm", p.now())
	res, err := p.client.Do(req)
	if err != nil {
		return true, errors.New("no answer: in a VPC it needs a NAT gateway or an interface endpoint for ssm")
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxParameters))
	if err != nil {
		return true, errors.New("the answer broke off")
	}
	if res.StatusCode != http.StatusOK {
		var v struct {
			Type string `json:"__type"`
		}
		_ = json.Unmarshal(text, &v)
		kind := v.Type[strings.LastIndexByte(v.Type, '#')+1:]
		again = res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests || strings.Contains(kind, "Throttling")
		return again, fmt.Errorf("the service answered %d %.60q", res.StatusCode, kind)
	}
	var v struct {
		Parameters []struct{ Name, Selector, Value string }
	}
	if json.Unmarshal(text, &v) != nil {
		return false, errors.New("the answer is no JSON")
	}
	for _, one := range v.Parameters {
		into[one.Name+one.Selector] = one.Value
	}
	return false, nil
}

// parameterClient follows no redirect: a signed question is for the one it was signed for.
var parameterClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
