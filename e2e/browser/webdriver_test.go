package browser_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A params holds the parameters of one command of WebDriver. "id" is an element's.
type params map[string]any

// A transport carries commands of WebDriver, by the names that its specification
// (W3C, 2.0) gives them, and returns what they return.
type transport interface {
	do(command string, p params) (json.RawMessage, error)
}

// marionette is Firefox's own protocol: numbered JSON arrays on one connection,
// each with its length in front.
type marionette struct {
	conn net.Conn
	in   *bufio.Reader
	last int
}

// answerWithin bounds every command of both transports: a machine that is asked
// too much is slow, a browser that hangs says nothing at all.
const answerWithin = 60 * time.Second

// dialMarionette connects and reads the greeting.
func dialMarionette(addr string) (*marionette, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	m := &marionette{conn: conn, in: bufio.NewReader(conn)}
	if _, err := m.read(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return m, nil
}

func (m *marionette) read() ([]byte, error) {
	if err := m.conn.SetReadDeadline(time.Now().Add(answerWithin)); err != nil {
		return nil, err
	}
	head, err := m.in.ReadString(':')
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(head, ":"))
	if err != nil || n < 0 || n > 64<<20 {
		return nil, fmt.Errorf("marionette: length %q", head)
	}
	text := make([]byte, n)
	_, err = io.ReadFull(m.in, text)
	return text, err
}

// do implements transport.
func (m *marionette) do(command string, p params) (json.RawMessage, error) {
	m.last++
	text, err := json.Marshal([]any{0, m.last, "WebDriver:" + command, p})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(m.conn, "%d:%s", len(text), text); err != nil {
		return nil, err
	}
	for {
		if text, err = m.read(); err != nil {
			return nil, err
		}
		var kind, id int
		var fault *struct{ Error, Message string }
		var result json.RawMessage
		if err := json.Unmarshal(text, &[]any{&kind, &id, &fault, &result}); err != nil {
			return nil, err
		}
		if kind != 1 || id != m.last {
			continue
		}
		if fault != nil {
			return nil, fmt.Errorf("%s: %s: %s", command, fault.Error, fault.Message)
		}
		// Some results come inside of an object with nothing else in it.
		var inner map[string]json.RawMessage
		if json.Unmarshal(result, &inner) == nil && len(inner) == 1 && inner["value"] != nil {
			return inner["value"], nil
		}
		return result, nil
	}
}

// routes are the addresses of WebDriver's commands below a session.
var routes = map[string]string{
	"Navigate": "POST /url", "Back": "POST /back", "Forward": "POST /forward", "Refresh": "POST /refresh",
	"FindElement": "POST /element", "ElementClick": "POST /element/{id}/click", "ElementSendKeys": "POST /element/{id}/value",
	"ExecuteScript": "POST /execute/sync", "TakeScreenshot": "GET /screenshot",
	"NewWindow": "POST /window/new", "GetWindowHandle": "GET /window", "SwitchToWindow": "POST /window", "CloseWindow": "DELETE /window",
	"DeleteSession": "DELETE ",
}

// remote is WebDriver over HTTP.
type remote struct {
	session string // http://host:port/session/ID
	client  http.Client
}

// openRemote begins a session.
func openRemote(url string, capabilities params) (*remote, error) {
	r := &remote{client: http.Client{Timeout: answerWithin}}
	text, err := r.send("POST", url+"/session", params{"capabilities": params{"alwaysMatch": capabilities}})
	if err != nil {
		return nil, err
	}
	var begun struct{ SessionID string }
	if err := json.Unmarshal(text, &begun); err != nil {
		return nil, err
	}
	r.session = url + "/session/" + begun.SessionID
	return r, nil
}

// do implements transport.
func (r *remote) do(command string, p params) (json.RawMessage, error) {
	method, path, ok := strings.Cut(routes[command], " ")
	if !ok {
		return nil, fmt.Errorf("no route for %s", command)
	}
	if id, ok := p["id"].(string); ok {
		path = strings.ReplaceAll(path, "{id}", id)
	}
	return r.send(method, r.session+path, p)
}

func (r *remote) send(method, url string, p params) (json.RawMessage, error) {
	var body io.Reader
	if method == http.MethodPost {
		if p == nil {
			p = params{}
		}
		text, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var found struct{ Value json.RawMessage }
	if err := json.NewDecoder(io.LimitReader(res.Body, 64<<20)).Decode(&found); err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %d %s", method, url, res.StatusCode, found.Value)
	}
	return found.Value, nil
}
