package scripts

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestContainerfile reads what is shipped: the last stage of the Containerfile.
// Nothing builds it here; that it holds no shell and no root can be read.
func TestContainerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range unsafeImage(string(text)) {
		t.Error(problem)
	}
	// The reader finds what it is there for.
	for what, changed := range map[string]string{
		"no user":           strings.Replace(string(text), "USER 65532:65532\n", "", 1),
		"root":              strings.Replace(string(text), "USER 65532:65532", "USER 0:65532", 1),
		"a name":            strings.Replace(string(text), "USER 65532:65532", "USER nobody", 1),
		"root at last":      string(text) + "USER 0\n",
		"a base image":      strings.Replace(string(text), "FROM scratch", "FROM debian", 1),
		"all of the source": string(text) + "COPY . /\n",
		"a command":         string(text) + "RUN true\n",
		"a shell":           strings.Replace(string(text), `ENTRYPOINT ["/stile"]`, "ENTRYPOINT /stile", 1),
		"a download":        string(text) + "ADD https://example.org/x /\n",
	} {
		if len(unsafeImage(changed)) == 0 {
			t.Errorf("%s: not found", what)
		}
	}
}

// unsafeImage lists what must not be in the last stage.
func unsafeImage(text string) (problems []string) {
	_, stage, ok := strings.Cut(text, "\nFROM scratch\n")
	if !ok || strings.Contains(stage, "\nFROM ") {
		return []string{"what is shipped is not made from scratch"}
	}
	user, entry := "", false
	for line := range strings.Lines(stage) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "USER":
			user = rest
		case "ENTRYPOINT", "CMD":
			entry = entry || word == "ENTRYPOINT"
			if !strings.HasPrefix(rest, "[") {
				problems = append(problems, "a shell would be needed: "+line)
			}
		case "COPY":
			if !strings.HasPrefix(rest, "--from=build ") {
				problems = append(problems, "copied from the source tree: "+line)
			}
		case "", "#", "EXPOSE", "LABEL":
		default:
			problems = append(problems, "what is this for: "+line)
		}
	}
	id, _, _ := strings.Cut(user, ":")
	if n, err := strconv.Atoi(id); err != nil || n == 0 {
		problems = append(problems, "the user is "+strconv.Quote(user)+"; want a number other than 0, which a platform can check")
	}
	if !entry {
		problems = append(problems, "no ENTRYPOINT")
	}
	return problems
}
