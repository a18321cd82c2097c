package functiontest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// A Gateway is an EMULATION of an API Gateway REST API with a REQUEST
// authorizer and a cache time of 0, by AWS's documented rules: a policy's Deny
// becomes the gateway response ACCESS_DENIED, an error or a malformed answer
// AUTHORIZER_FAILURE; their templates know simple $context variables and are
// chosen by the first media type of Accept; their header mappings know
// context.authorizer.KEY and quoted literals. It is no proof of what AWS does.
//
// For tests of several clients, the field X-Test-Client stands for the address
// of the connection.
type Gateway struct {
	Invoke    func(event []byte) ([]byte, error)
	Origin    *url.URL
	Responses map[string]GatewayResponse // by type

	mu   sync.Mutex // the emulator below runs one at a time
	Seen struct{ Allowed, Denied, Failed int }
}

// A GatewayResponse is what one error of the API looks like.
type GatewayResponse struct {
	Status    int
	Headers   map[string]string // name to mapping expression
	Templates map[string]string // by media type
}

const arn = "arn:aws:execute-api:eu-west-1:123456789012:abc123/prod/"

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	if v := r.Header.Get("X-Test-Client"); v != "" {
		client = v
	}
	single := map[string]string{"Host": r.Host}
	multi := map[string][]string{"Host": {r.Host}}
	for name, lines := range r.Header {
		single[name], multi[name] = lines[len(lines)-1], lines
	}
	event, err := json.Marshal(map[string]any{
		"type": "REQUEST", "methodArn": arn + r.Method + r.URL.EscapedPath(), "resource": "/{proxy+}",
		"path": r.URL.EscapedPath(), "httpMethod": r.Method, "headers": single, "multiValueHeaders": multi,
		"queryStringParameters": map[string]string{}, "multiValueQueryStringParameters": r.URL.Query(),
		"requestContext": map[string]any{"stage": "prod", "domainName": r.Host, "identity": map[string]any{"sourceIp": client}},
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	out, err := g.Invoke(event)
	effect, authorizer := "", map[string]string(nil)
	if err == nil {
		effect, authorizer, err = judge(out, arn+r.Method+r.URL.EscapedPath())
	}
	switch {
	case err != nil:
		g.Seen.Failed++
		g.respond(w, r, "AUTHORIZER_FAILURE", nil)
	case effect != "Allow":
		g.Seen.Denied++
		g.respond(w, r, "ACCESS_DENIED", authorizer)
	default:
		g.Seen.Allowed++
		(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(g.Origin)
			p.Out.Header.Set("X-Stile-RateLimit", authorizer["rateLimit"])
		}}).ServeHTTP(w, r)
	}
}

// judge reads an authorizer's answer as strictly as the documentation has it.
func judge(out []byte, method string) (effect string, context map[string]string, err error) {
	var v struct {
		PrincipalID    string `json:"principalId"`
		PolicyDocument struct {
			Version   string
			Statement []struct{ Action, Effect, Resource string }
		} `json:"policyDocument"`
		Context map[string]any `json:"context"`
	}
	if err := json.Unmarshal(out, &v); err != nil {
		return "", nil, err
	}
	context = map[string]string{}
	for k, value := range v.Context {
		switch value.(type) {
		case string, float64, bool:
			context[k] = fmt.Sprint(value)
		default:
			return "", nil, fmt.Errorf("context.%s is no string, number or boolean", k)
		}
	}
	if v.PrincipalID == "" || v.PolicyDocument.Version != "2012-10-17" {
		return "", nil, fmt.Errorf("malformed policy %.200s", out)
	}
	for _, s := range v.PolicyDocument.Statement {
		if len(s.Resource) > 512 {
			return "", nil, fmt.Errorf("resource of %d characters", len(s.Resource))
		}
		if s.Action == "execute-api:Invoke" && (s.Resource == "*" || strings.HasPrefix(method, strings.TrimSuffix(s.Resource, "*"))) {
			if s.Effect == "Deny" {
				return "Deny", context, nil
			}
			effect = s.Effect
		}
	}
	return effect, context, nil // no statement that matches denies
}

var variable = regexp.MustCompile(`\$context\.[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?`)

// respond writes a gateway response.
func (g *Gateway) respond(w http.ResponseWriter, r *http.Request, kind string, authorizer map[string]string) {
	a := g.Responses[kind]
	for name, expression := range a.Headers {
		value := strings.Trim(expression, "'")
		if key, ok := strings.CutPrefix(expression, "context.authorizer."); ok {
			value = authorizer[key]
		}
		w.Header().Set(name, value)
	}
	media, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	media, _, _ = strings.Cut(media, ";")
	body, ok := a.Templates[media]
	if !ok {
		media, body = "application/json", a.Templates["application/json"]
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(a.Status)
	_, _ = w.Write([]byte(variable.ReplaceAllStringFunc(body, func(v string) string {
		if v == "$context.requestId" {
			return "4f2d0e70-0000-4000-8000-000000000001"
		}
		return authorizer[strings.TrimPrefix(v, "$context.authorizer.")]
	})))
}
