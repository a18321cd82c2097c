package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/wire"
)

// lies are the fields in which a stranger could claim an address.
var lies = []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip", "X-Original-Forwarded-For"}

// lie is an address of documentation (RFC 5737): nobody has it.
const lie = "192.0.2.123"

// A reply is what the deployment answered.
type reply struct {
	status    int
	location  string
	diagnosis *wire.Diagnosis
}

// silence words why there is no diagnosis.
func (r *reply) silence(asked bool) string {
	switch {
	case !asked:
		return "not asked: set STILE_DOCTOR_SECRET to one of the policy's doctor.secrets"
	case r.location != "":
		return fmt.Sprintf("answered %d with a redirect to %s: name that address", r.status, plain(r.location))
	}
	return fmt.Sprintf("answered %d like any page: Stile is not in front of this address, it does not know this secret (doctor.secrets), or it is only asked about pages (an authorizer, forward-auth) and cannot answer: then give --hit-log", r.status)
}

// ask sends one request and reads a diagnosis, if that is the answer.
func (c *doctorCmd) ask(ctx context.Context, t *terminal, u *url.URL, header http.Header) (*reply, netip.Addr, error) {
	var local netip.Addr
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if a, ok := info.Conn.LocalAddr().(*net.TCPAddr); ok {
			local = a.AddrPort().Addr().Unmap()
		}
	}})
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, local, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "stile-doctor")
	}
	req.Header.Set("Cache-Control", "no-cache")
	if c.DoctorSecret != "" {
		req.Header.Set(gate.DoctorHeader, c.DoctorSecret)
	}
	client := &http.Client{Transport: t.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return nil, local, err
	}
	defer res.Body.Close()
	out := &reply{status: res.StatusCode, location: res.Header.Get("Location")}
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, local, err
	}
	var d wire.Diagnosis
	if json.Unmarshal(body, &d) == nil && d.Stile == "diagnosis" {
		out.diagnosis = &d
	}
	return out, local, nil
}
