package terraformtest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// aws asks the local server what it holds. Nothing is signed: it checks nothing,
// and takes the service from the credential's scope.
type aws struct {
	t   *testing.T
	url string
}

func (a aws) ask(service, method, path, target, body string) []byte {
	a.t.Helper()
	req, err := http.NewRequest(method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/eu-central-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	switch {
	case target != "":
		req.Header.Set("X-Amz-Target", target)
		req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	case service == "iam":
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	default:
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		a.t.Fatalf("%s %s %s: %d %v\n%.500s", service, method, path, res.StatusCode, err, data)
	}
	return data
}

func (a aws) get(service, path string, into any) {
	a.t.Helper()
	if err := json.Unmarshal(a.ask(service, "GET", path, "", ""), into); err != nil {
		a.t.Fatalf("%s: %v", path, err)
	}
}

// TestApplyAgainstMoto applies the AWS module, reads back through the AWS API
// what must be so, plans again (nothing to do), and destroys. The server runs
// neither the authorizer nor the function, and cannot change a method, so the way
// back (mode = "off") is in the module's own tests.
func TestApplyAgainstMoto(t *testing.T) {
	t.Parallel()
	mirror := needAWS(t)
	server := aws{t, moto(t)}
	heavy.Lock()
	defer heavy.Unlock()

	dir := filepath.Join(workspace(t), "terraformtest", "testdata", "moto")
	rc := filepath.Join(t.TempDir(), "cli.tfrc")
	text := fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror)
	if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"TF_CLI_CONFIG_FILE=" + rc, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "TF_VAR_endpoint=" + server.url, "TF_VAR_bundle=" + filepath.Join(dir, "../../../aws/tests/empty.zip")}
	terraform := func(want int, args ...string) string {
		t.Helper()
		out, code := run(t, dir, env, "terraform", append(args, "-no-color")...)
		if code != want {
			t.Fatalf("terraform %s: exit %d, want %d\n%s", args[0], code, want, out)
		}
		return out
	}
	server.ask("ssm", "POST", "/", "AmazonSSM.PutParameter", `{"Name":"/stile/cookie","Type":"SecureString","Value":"0123456789012345678901234"}`)

	terraform(0, "init")
	terraform(0, "apply", "-auto-approve")
	api := server.theAPI()
	server.checkAnswers(api)
	server.checkAuthorizer(api)
	server.checkFunction()
	server.checkTable()
	server.checkRole()

	// The server drops this field of a new API, which AWS keeps.
	server.ask("apigateway", "PATCH", "/restapis/"+api, "", `{"patchOperations":[{"op":"replace","path":"/binaryMediaTypes","value":"*/*"}]}`)
	terraform(0, "plan", "-detailed-exitcode")

	// What the server cannot create, the provider can at least plan: 2 is a plan
	// with changes.
	other := terraform(2, "plan", "-detailed-exitcode", "-refresh=false", "-var", "entry=cloudfront", "-var", "store=elasticache")
	for _, planned := range []string{"aws_cloudfront_distribution.site", "aws_cloudfront_function.viewer", "aws_lambda_function_url.stile", "aws_elasticache_replication_group.counters", "aws_vpc_security_group_ingress_rule.cache"} {
		if !strings.Contains(other, planned) || strings.Contains(other, "Error") {
			t.Errorf("%s is not planned", planned)
		}
	}

	terraform(0, "destroy", "-auto-approve", "-refresh=false")
	var left struct{ Item []any }
	server.get("apigateway", "/restapis", &left)
	if len(left.Item) != 0 {
		t.Errorf("destroy left %d APIs", len(left.Item))
	}
}

func (a aws) theAPI() string {
	a.t.Helper()
	var apis struct{ Item []struct{ ID string } }
	a.get("apigateway", "/restapis", &apis)
	if len(apis.Item) != 1 {
		a.t.Fatalf("%d APIs", len(apis.Item))
	}
	return apis.Item[0].ID
}

func (a aws) checkAnswers(api string) {
	a.t.Helper()
	for kind, status := range map[string]string{"ACCESS_DENIED": "429", "AUTHORIZER_FAILURE": "503", "AUTHORIZER_CONFIGURATION_ERROR": "503", "UNAUTHORIZED": "503"} {
		var r struct {
			StatusCode                            string
			ResponseParameters, ResponseTemplates map[string]string
		}
		a.get("apigateway", "/restapis/"+api+"/gatewayresponses/"+kind, &r)
		if r.StatusCode != status {
			a.t.Errorf("%s answers %s, want %s", kind, r.StatusCode, status)
		}
		want := map[string]string{"Cache-Control": "'no-store'", "Retry-After": "'5'"}
		if status == "429" {
			want = map[string]string{
				"Cache-Control": "'no-store'", "Retry-After": "context.authorizer.retryAfter",
				"RateLimit": "context.authorizer.rateLimit", "RateLimit-Policy": "context.authorizer.rateLimitPolicy",
				"Set-Cookie": "context.authorizer.setCookie",
			}
		}
		for field, value := range want {
			if got := r.ResponseParameters["gatewayresponse.header."+field]; got != value {
				a.t.Errorf("%s: %s is %q, want %q", kind, field, got, value)
			}
		}
		for _, media := range []string{"text/html", "application/json"} {
			body := r.ResponseTemplates[media]
			if body == "" || !strings.Contains(body, "mailto:ops@example.org") {
				a.t.Errorf("%s has no %s with a contact: %q", kind, media, body)
			}
			rest := strings.NewReplacer("$context.authorizer.", "", "$context.requestId", "").Replace(body)
			if strings.Contains(rest, "$") {
				a.t.Errorf("%s %s has a dollar sign that API Gateway would read as a variable", kind, media)
			}
			if media == "application/json" && !json.Valid([]byte(strings.ReplaceAll(body, "$context.authorizer.retryAfter", "60"))) {
				a.t.Errorf("%s does not make JSON: %s", kind, body)
			}
		}
	}
}

func (a aws) checkAuthorizer(api string) {
	a.t.Helper()
	var authorizers struct {
		Item []struct {
			ID, Type, IdentitySource     string
			AuthorizerResultTTLInSeconds *int `json:"authorizerResultTtlInSeconds"`
		}
	}
	a.get("apigateway", "/restapis/"+api+"/authorizers", &authorizers)
	if len(authorizers.Item) != 1 {
		a.t.Fatalf("%d authorizers", len(authorizers.Item))
	}
	w := authorizers.Item[0]
	if ttl := w.AuthorizerResultTTLInSeconds; ttl == nil || *ttl != 0 || w.Type != "REQUEST" || w.IdentitySource != "" {
		a.t.Errorf("authorizer %+v: want REQUEST, TTL 0 and no identity source", w)
	}
	var resources struct {
		Item []struct {
			Path            string
			ResourceMethods map[string]struct {
				AuthorizationType, AuthorizerID string
				MethodIntegration               struct {
					URI, Type         string
					RequestParameters map[string]string
				}
			}
		}
	}
	a.get("apigateway", "/restapis/"+api+"/resources?embed=methods", &resources)
	paths := map[string]string{"/": "https://www.example.org/", "/{proxy+}": "https://www.example.org/{proxy}"}
	if len(resources.Item) != len(paths) {
		a.t.Errorf("%d resources, want %d", len(resources.Item), len(paths))
	}
	for _, r := range resources.Item {
		m, ok := r.ResourceMethods["ANY"]
		if !ok || len(r.ResourceMethods) != 1 || m.AuthorizationType != "CUSTOM" || m.AuthorizerID != w.ID {
			a.t.Errorf("%s: %+v, want ANY that asks authorizer %s", r.Path, r.ResourceMethods, w.ID)
		}
		if m.MethodIntegration.Type != "HTTP_PROXY" || m.MethodIntegration.URI != paths[r.Path] {
			a.t.Errorf("%s goes to %+v", r.Path, m.MethodIntegration)
		}
		for field, key := range map[string]string{"X-Stile-RateLimit": "rateLimit", "X-Stile-RateLimit-Policy": "rateLimitPolicy", "X-Stile-Set-Cookie": "setCookie"} {
			if got := m.MethodIntegration.RequestParameters["integration.request.header."+field]; got != "context.authorizer."+key {
				a.t.Errorf("%s: the site gets %q as %s", r.Path, got, field)
			}
		}
	}
}

func (a aws) checkFunction() {
	a.t.Helper()
	var f struct {
		Runtime       string
		Architectures []string
		Timeout       int
		Environment   struct{ Variables map[string]string }
	}
	a.get("lambda", "/2015-03-31/functions/stile-moto/configuration", &f)
	if f.Runtime != "provided.al2023" || !slices.Equal(f.Architectures, []string{"arm64"}) || f.Timeout != 5 {
		a.t.Errorf("function: %+v", f)
	}
	for name, want := range map[string]string{
		"STILE_MODE": "observe", "STILE_SCALE": "10", "STILE_CLIENT_FROM": "platform",
		"STILE_STORE": "dynamodb://stile-moto-counters?region=eu-central-1", "STILE_COOKIE_SECRETS": "0123456789012345678901234",
		"STILE_KEY_SECRETS": "ssm:/stile/keys", // the function's own to read
	} {
		if got := f.Environment.Variables[name]; got != want {
			a.t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
}

func (a aws) checkTable() {
	a.t.Helper()
	var table struct {
		Table struct {
			KeySchema          []struct{ AttributeName, KeyType string }
			BillingModeSummary struct{ BillingMode string }
		}
	}
	if err := json.Unmarshal(a.ask("dynamodb", "POST", "/", "DynamoDB_20120810.DescribeTable", `{"TableName":"stile-moto-counters"}`), &table); err != nil {
		a.t.Fatal(err)
	}
	if k := table.Table.KeySchema; len(k) != 1 || k[0].AttributeName != "pk" || k[0].KeyType != "HASH" || table.Table.BillingModeSummary.BillingMode != "PAY_PER_REQUEST" {
		a.t.Errorf("table: %+v", table.Table)
	}
	var ttl struct {
		TimeToLiveDescription struct{ TimeToLiveStatus, AttributeName string }
	}
	if err := json.Unmarshal(a.ask("dynamodb", "POST", "/", "DynamoDB_20120810.DescribeTimeToLive", `{"TableName":"stile-moto-counters"}`), &ttl); err != nil {
		a.t.Fatal(err)
	}
	if d := ttl.TimeToLiveDescription; d.TimeToLiveStatus != "ENABLED" || d.AttributeName != "ttl" {
		a.t.Errorf("TTL: %+v", d)
	}
}

// actions are one word or a list of them.
type actions []string

func (a *actions) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = actions{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// checkRole reads what the function may do: its log, its table, the one secret by
// reference, and no more.
func (a aws) checkRole() {
	a.t.Helper()
	ask := func(form string, into any) {
		a.t.Helper()
		if err := xml.Unmarshal(a.ask("iam", "POST", "/", "", form+"&Version=2010-05-08"), into); err != nil {
			a.t.Fatal(err)
		}
	}
	var inline struct {
		Names []string `xml:"ListRolePoliciesResult>PolicyNames>member"`
	}
	ask("Action=ListRolePolicies&RoleName=stile-moto", &inline)
	var attached struct {
		Names []string `xml:"ListAttachedRolePoliciesResult>AttachedPolicies>member>PolicyName"`
	}
	ask("Action=ListAttachedRolePolicies&RoleName=stile-moto", &attached)
	if !slices.Equal(inline.Names, []string{"stile"}) || len(attached.Names) != 0 {
		a.t.Fatalf("the role has policies %v and %v, want one of its own", inline.Names, attached.Names)
	}
	var got struct {
		Document string `xml:"GetRolePolicyResult>PolicyDocument"`
	}
	ask("Action=GetRolePolicy&RoleName=stile-moto&PolicyName=stile", &got)
	text, err := url.QueryUnescape(got.Document)
	if err != nil {
		a.t.Fatal(err)
	}
	var document struct {
		Statement []struct {
			Sid, Effect, Resource string
			Action                actions
		}
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		a.t.Fatalf("%v\n%s", err, text)
	}
	want := map[string]string{
		"logs:CreateLogStream": "arn:aws:logs:eu-central-1:123456789012:log-group:/aws/lambda/stile-moto:*",
		"logs:PutLogEvents":    "arn:aws:logs:eu-central-1:123456789012:log-group:/aws/lambda/stile-moto:*",
	}
	for _, action := range []string{"UpdateItem", "GetItem", "DescribeTable", "DescribeTimeToLive"} {
		want["dynamodb:"+action] = "arn:aws:dynamodb:eu-central-1:123456789012:table/stile-moto-counters"
	}
	want["ssm:GetParameters"] = "arn:aws:ssm:eu-central-1:123456789012:parameter/stile/keys"
	for _, s := range document.Statement {
		for _, action := range s.Action {
			if want[action] == "" || want[action] != s.Resource || s.Effect != "Allow" {
				a.t.Errorf("the function may %s %s on %s", s.Effect, action, s.Resource)
			}
			delete(want, action)
		}
	}
	for action := range want {
		a.t.Errorf("the function may not %s", action)
	}
}
