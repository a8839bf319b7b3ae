package hosts_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"arizuko/dashd/internal/hosts"
	"arizuko/pkg/config"
)

// serve returns an answer with the client and the scheme that the handler sees.
func serve(t *testing.T, h *hosts.Hosts, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/login", nil)
	r.Host = "127.0.0.1:8083"
	change(r)
	w := httptest.NewRecorder()
	h.Forwarded(h.Check(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RemoteAddr, " ", hosts.HTTPS(r))
	}))).ServeHTTP(w, r)
	return w
}

func TestCheck_OtherHosts_Refused(t *testing.T) {
	h := &hosts.Hosts{Public: "https://Chat.example:8443/", Secret: "s3cret"}
	for host, known := range map[string]bool{
		"127.0.0.1:8083": true, "127.0.0.1": true, "[::1]:8083": true, "[::1]": true, "192.0.2.7:1": true, "[fe80::1%25eth0]:1": true,
		"localhost:8083": true, "LOCALHOST": true, "arizuko.localhost:8083": true, "localhost.": true,
		"chat.example": true, "chat.example:9": true, "CHAT.EXAMPLE.": true,
		"evil.example": false, "evil.example:8083": false, "chat.example.evil.example": false, "evilchat.example": false,
		"xlocalhost": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "127.0.0.1.": true, "": false, ".": false,
		"dashd:8083": false, "[::1": true, "127.0.0.1@evil.example": false,
	} {
		w := serve(t, h, func(r *http.Request) { r.Host = host })
		if (w.Code == http.StatusOK) != known {
			t.Errorf("%q: %d", host, w.Code)
		}
		if !known && (w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "open https://Chat.example:8443/")) {
			t.Errorf("%q: %d %s", host, w.Code, w.Body)
		}
	}
	if w := serve(t, &hosts.Hosts{}, func(r *http.Request) { r.Host = "" }); w.Code != http.StatusForbidden {
		t.Errorf("without a public name: %d", w.Code)
	}
	for authorization, code := range map[string]int{"Bearer s3cret": 200, "Bearer guess": 403} {
		w := serve(t, h, func(r *http.Request) {
			r.Host = "dashd:8083"
			r.Header.Set("Authorization", authorization)
		})
		if w.Code != code {
			t.Errorf("%s: %d, want %d", authorization, w.Code, code)
		}
	}
}

func TestForwarded_TrustedProxiesOnly(t *testing.T) {
	var proxies config.Networks
	if err := proxies.UnmarshalText([]byte("192.0.2.1,10.0.0.0/8,2001:db8::/32")); err != nil {
		t.Fatal(err)
	}
	const client = "198.51.100.7"
	for name, tc := range map[string]struct {
		peer  string
		chain []string // X-Forwarded-For
		proto string
		want  string
	}{
		"no proxy":               {"203.0.113.5:9", []string{client}, "https", "203.0.113.5:9 false"},
		"neighbour of a proxy":   {"192.0.2.2:9", []string{client}, "https", "192.0.2.2:9 false"},
		"proxy":                  {"192.0.2.1:9", []string{client}, "https", client + ":0 true"},
		"proxy without TLS":      {"192.0.2.1:9", []string{client}, "http", client + ":0 false"},
		"made up by the client":  {"192.0.2.1:9", []string{"1.1.1.1, " + client}, "https", client + ":0 true"},
		"in a header of its own": {"192.0.2.1:9", []string{"1.1.1.1", client}, "https", client + ":0 true"},
		"two proxies":            {"192.0.2.1:9", []string{client + ", 10.1.2.3"}, "https", client + ":0 true"},
		"mapped":                 {"[::ffff:192.0.2.1]:9", []string{client}, "https", client + ":0 true"},
		"IPv6":                   {"[2001:db8::1]:9", []string{"2001:dead::1"}, "https", "[2001:dead::1]:0 true"},
		"proxies only":           {"192.0.2.1:9", []string{"10.1.2.3"}, "", "10.1.2.3:0 false"},
		"no header":              {"192.0.2.1:9", nil, "", "192.0.2.1:9 false"},
		"garbage":                {"192.0.2.1:9", []string{client + ", unknown"}, "https", "192.0.2.1:9 true"},
		"no address":             {"@", []string{client}, "https", "@ false"},
	} {
		w := serve(t, &hosts.Hosts{Proxies: proxies}, func(r *http.Request) {
			r.RemoteAddr = tc.peer
			for _, value := range tc.chain {
				r.Header.Add("X-Forwarded-For", value)
			}
			r.Header.Set("X-Forwarded-Proto", tc.proto)
		})
		if got := w.Body.String(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	w := serve(t, &hosts.Hosts{}, func(r *http.Request) { r.TLS = &tls.ConnectionState{} })
	if got := w.Body.String(); got != "192.0.2.1:1234 true" {
		t.Errorf("TLS: %s", got)
	}
}
