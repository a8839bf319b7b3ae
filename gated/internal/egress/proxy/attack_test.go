package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"arizuko/pkg/egress"
)

// TestAttacks: what an agent sends by hand reaches no server, or reaches it as what the rules have decided about.
func TestAttacks(t *testing.T) {
	t.Parallel()
	rules := []egress.Rule{
		{Host: "open.test", Action: egress.Pass},
		{Host: "open.test:22", Action: egress.Pass},
		{Host: "open.test:8443", Action: egress.Pass},
		{Host: "denied.test", Action: egress.Deny},
		{Host: "api.test", Method: "GET", Path: "/ok/", Action: egress.Pass},
		{Host: "api.test", Method: "POST", Path: "/ok/", Action: egress.Pass},
		{Host: "api.test", Action: egress.Deny},
		{Host: "127.0.0.1", Action: egress.Pass},
		{Host: "93.184.216.34", Method: "GET", Action: egress.Pass},
		{Host: "private.test", Action: egress.Pass},
		{Host: "metadata.test", Method: "GET", Action: egress.Pass},
		{Host: "nopath.test", Method: "GET", Action: egress.Pass},
	}
	const get = "GET /ok/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n"
	for name, tt := range map[string]struct {
		tunnel, sni, text string
		want              string // in the answer
		seen              string // by the server, "" for nothing
		state             egress.State
	}{
		"allowed":               {"api.test:443", "api.test", get + "\r\n", " 200 OK", "GET api.test /ok/ ", egress.Sent},
		"allowed, upper case":   {"API.test.:443", "api.test", strings.Replace(get, "api", "Api", 1) + "\r\n", " 200 OK", "GET api.test /ok/ ", egress.Sent},
		"other path":            {"api.test:443", "api.test", "GET /secret HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"path with dots":        {"api.test:443", "api.test", "GET /ok/../secret HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"path, escaped slash":   {"api.test:443", "api.test", "GET /ok/..%2fsecret HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n", "plain form", "", egress.Refused},
		"path, no rule with it": {"nopath.test:443", "nopath.test", "GET //a HTTP/1.1\r\nHost: nopath.test\r\nConnection: close\r\n\r\n", " 200 OK", "GET nopath.test //a ", egress.Sent},
		"other Host":            {"api.test:443", "api.test", "GET /ok/ HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"other port in Host":    {"api.test:443", "api.test", "GET /ok/ HTTP/1.1\r\nHost: api.test:8443\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"two Hosts":             {"api.test:443", "api.test", "GET /ok/ HTTP/1.1\r\nHost: api.test\r\nHost: evil.test\r\n\r\n", " 400 ", "", ""},
		"no Host":               {"api.test:443", "api.test", "GET /ok/ HTTP/1.0\r\n\r\n", " 403 ", "", egress.Refused},
		"absolute inside":       {"api.test:443", "api.test", "GET http://evil.test/ok/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"CONNECT inside":        {"api.test:443", "api.test", "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"other SNI":             {"api.test:443", "evil.test", get + "\r\n", "handshake: ", "", egress.Refused},
		"other SNI, passed":     {"open.test:443", "evil.test", get + "\r\n", "handshake: ", "", egress.Refused},
		"other SNI, other port": {"open.test:8443", "evil.test", get + "\r\n", "handshake: ", "", egress.Refused},
		"no SNI, passed":        {"open.test:443", "", get + "\r\n", "handshake: ", "", egress.Refused},
		"no TLS, passed":        {"open.test:443", "-", "SSH-2.0-x\r\n", "", "", egress.Refused},
		"no TLS":                {"api.test:443", "-", get + "\r\n", "", "", egress.Refused},
		"denied":                {"denied.test:443", "-", "", "403 Forbidden", "", egress.Refused},
		"h2c":                   {"api.test:443", "api.test", get + "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n", " 403 ", "", egress.Refused},
		"two upgrades":          {"api.test:443", "api.test", get + "Upgrade: websocket\r\nUpgrade: h2c\r\n\r\n", " 403 ", "", egress.Refused},
		"POST upgrades":         {"api.test:443", "api.test", "POST /ok/ HTTP/1.1\r\nHost: api.test\r\nUpgrade: websocket\r\nConnection: close, Upgrade\r\nContent-Length: 0\r\n\r\n", " 403 ", "", egress.Refused},
		"HTTP/2 preface":        {"api.test:443", "api.test", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", " 403 ", "", egress.Refused},
		"method":                {"api.test:443", "api.test", "post /ok/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"path in a header":      {"api.test:443", "api.test", get + "X-Original-URL: /secret\r\n\r\n", " 403 ", "", egress.Refused},
		"path with parameters":  {"api.test:443", "api.test", "GET /ok/..;/secret HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"long method":           {"api.test:443", "api.test", strings.Repeat("X", 5000) + " /ok/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"long path, asked":      {"asked.test:443", "asked.test", "GET /" + strings.Repeat("x", 5000) + " HTTP/1.1\r\nHost: asked.test\r\nConnection: close\r\n\r\n", "too long to ask", "", egress.Refused},
		"method override":       {"api.test:443", "api.test", get + "X-HTTP-Method-Override: DELETE\r\n\r\n", " 403 ", "", egress.Refused},
		"smuggled by length and chunks": {"api.test:443", "api.test",
			"POST /ok/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\nGET /secret HTTP/1.1\r\nHost: api.test\r\n\r\n",
			" 200 OK", "POST api.test /ok/ ", egress.Sent}, // chunks count, and the connection ends: there is one request
		"two lengths":             {"api.test:443", "api.test", "POST /ok/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\nabcd", " 400 ", "", ""},
		"odd transfer encoding":   {"api.test:443", "api.test", "POST /ok/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", " 501 ", "", ""},
		"space before the colon":  {"api.test:443", "api.test", "POST /ok/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", " 400 ", "", ""},
		"line folding":            {"api.test:443", "api.test", "GET /ok/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\nX: a\r\n Host: evil.test\r\n\r\n", " 200 OK", "GET api.test /ok/ ", egress.Sent},
		"header of the proxy":     {"api.test:443", "api.test", get + "AUTH\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n", " 200 OK", "GET api.test /ok/ ", egress.Sent},
		"to this machine":         {"127.0.0.1:443", "-", "", " 403 ", "", egress.Refused},
		"in another form":         {"127.1:443", "-", "", " 400 ", "", ""},
		"as a number":             {"2130706433:443", "-", "", " 400 ", "", ""},
		"in hex":                  {"0x7f.0x1:443", "-", "", " 400 ", "", ""},
		"in IPv6":                 {"[::1]:443", "-", "", " 403 ", "", egress.Refused},
		"mapped":                  {"[::ffff:127.0.0.1]:443", "-", "", " 403 ", "", egress.Refused},
		"NAT64":                   {"[64:ff9b::7f00:1]:443", "-", "", " 403 ", "", egress.Refused},
		"with a zone":             {"[fe80::1%25eth0]:443", "-", "", " 400 ", "", ""},
		"name, private address":   {"private.test:443", "-", "", " 403 ", "", egress.Refused},
		"name, metadata":          {"metadata.test:443", "metadata.test", "GET / HTTP/1.1\r\nHost: metadata.test\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"asked, private address":  {"asked.test:443", "asked.test", "GET / HTTP/1.1\r\nHost: asked.test\r\nConnection: close\r\n\r\n", "private or reserved", "", egress.Refused},
		"asked, address":          {"", "", "GET http://10.0.0.1/ HTTP/1.1\r\nHost: x\r\nAUTH\r\nConnection: close\r\n\r\n", "reserved address", "", egress.Refused},
		"to a public address":     {"93.184.216.34:443", "", "GET / HTTP/1.1\r\nHost: 93.184.216.34\r\nConnection: close\r\n\r\n", " 200 OK", "GET 93.184.216.34 / ", egress.Sent},
		"no port":                 {"api.test", "-", "", " 400 ", "", ""},
		"port 0":                  {"api.test:0", "-", "", " 400 ", "", ""},
		"user in the host":        {"api.test@evil.test:443", "-", "", " 400 ", "", ""},
		"http, allowed":           {"", "", "GET http://api.test/ok/ HTTP/1.1\r\nHost: evil.test\r\nAUTH\r\nConnection: close\r\n\r\n", " 200 OK", "GET api.test /ok/ ", egress.Sent},
		"http, denied":            {"", "", "GET http://api.test/secret HTTP/1.1\r\nHost: api.test\r\nAUTH\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"http, this machine":      {"", "", "GET http://127.0.0.1/ HTTP/1.1\r\nHost: api.test\r\nAUTH\r\nConnection: close\r\n\r\n", " 403 ", "", egress.Refused},
		"http, localhost":         {"", "", "GET http://localhost:8080/ HTTP/1.1\r\nHost: api.test\r\nAUTH\r\nConnection: close\r\n\r\n", "private or reserved", "", egress.Refused},
		"http, no token":          {"", "", "GET http://api.test/ok/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n", " 407 ", "", ""},
		"http, wrong token":       {"", "", "GET http://api.test/ok/ HTTP/1.1\r\nHost: api.test\r\nProxy-Authorization: " + encodeBasic("run:x") + "\r\nConnection: close\r\n\r\n", " 407 ", "", ""},
		"https in absolute form":  {"", "", "GET https://api.test/ok/ HTTP/1.1\r\nHost: api.test\r\nAUTH\r\nConnection: close\r\n\r\n", " 400 ", "", ""},
		"the proxy as a server":   {"", "", "GET /ok/ HTTP/1.1\r\nHost: api.test\r\nAUTH\r\nConnection: close\r\n\r\n", " 400 ", "", ""},
		"plain HTTP in a tunnel":  {"api.test:80", "-", get + "\r\n", " 200 OK", "GET api.test /ok/ ", egress.Sent},
		"large header":            {"api.test:443", "api.test", get + "X: " + strings.Repeat("x", maxHeader+8192) + "\r\n\r\n", " 431 ", "", ""},
		"tunnel that says it all": {"", "", "CONNECT denied.test:443 HTTP/1.1\r\nConnection: close\r\nAUTH\r\nHost: open.test\r\n\r\n", " 403 ", "", egress.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen atomic.Value
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				text := fmt.Sprintf("%s %s %s %s", r.Method, r.Host, r.RequestURI, body)
				for _, header := range []string{"Proxy-Authorization", "X-Hop", "Upgrade", "X-Forwarded-For"} {
					text += r.Header.Get(header)
				}
				if before, _ := seen.Load().(string); before != "" {
					text = before + "|" + text
				}
				seen.Store(text)
			}, append([]egress.Rule(nil), rules...)...)
			w.names = map[string]string{"private.test": "10.1.2.3", "metadata.test": "169.254.169.254", "asked.test": "100.64.0.1"}
			w.ask = func(_ context.Context, r *egress.Receipt, _ string, _ []byte) (bool, string, error) {
				if r.Host == "localhost" {
					t.Error("a user was asked about localhost")
				}
				return true, "", nil
			}
			answer := w.raw(tt.tunnel, tt.sni, tt.text)
			if got, _ := seen.Load().(string); got != tt.seen || !strings.Contains(answer, tt.want) {
				t.Errorf("the server saw %q, the answer is %.300q", got, answer)
			}
			r := w.last()
			if tt.state != "" {
				r = <-w.ended
			}
			if len(r.Method) > 20 || r.State != tt.state || (r.Reason == "") != (r.State != egress.Refused) {
				t.Errorf("receipt %+v", r)
			}
			if strings.Contains(answer, " 403 ") && !strings.Contains(answer, "\r\n\r\narizuko: ") {
				t.Errorf("the refusal says %q", answer)
			}
		})
	}
}

func TestMayReach(t *testing.T) {
	t.Parallel()
	p := &Proxy{Config: Config{Allowed: allow(t, "10.9.0.0/16", "fd00::7")}}
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "64:ff9b::808:808": true, "::ffff:8.8.8.8": true, "10.9.1.1": true, "fd00::7": true,
		"64:ff9b::a09:101": true, "::ffff:10.9.1.1": true,
		"10.8.1.1": false, "127.0.0.1": false, "127.255.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "169.254.169.254": false,
		"100.100.100.200": false, "168.63.129.16": false, "192.0.0.192": false, "172.31.0.1": false, "192.168.0.1": false,
		"198.18.0.1": false, "203.0.113.1": false, "224.0.0.1": false, "255.255.255.255": false, "192.0.2.1": false, "240.0.0.1": false,
		"::": false, "::1": false, "::7f00:1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00::8": false,
		"fd00:ec2::254": false, "ff02::1": false, "2001:db8::1": false, "2001::1": false, "2002:7f00:1::": false, "3fff::1": false,
		"64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "::ffff:10.8.1.1": false, "100::1": false, "fec0::1": false,
	} {
		if got := p.mayReach(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
