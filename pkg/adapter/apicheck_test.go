package adapter

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/config"
)

// probeAt runs the probe of an API whose answers have a field "ok".
func probeAt(t *testing.T, c *http.Client, url string) error {
	t.Helper()
	t.Cleanup(c.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/call", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := APICheck{
		API: "the API", Variable: "API_URL", URL: config.URL(url),
		Valid: func(call string, _ int, answer any) bool {
			object, _ := answer.(map[string]any)
			_, is := object["ok"].(bool)
			return is && call == "call"
		},
	}.Client(c).Do(req)
	if err != nil {
		return TransportError(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), "ok") {
		t.Errorf("the answer is %q, %v", body, err)
	}
	return nil
}

func TestAPICheck_Answer_NamesTheCause(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		wait   string
		body   string
		want   string // "" for none
	}{
		"answers":        {200, "", `{"ok":true}`, ""},
		"refuses":        {401, "", `{"ok":false}`, ""},
		"page":           {200, "", " <!DOCTYPE html><html>", "answers 200 OK with a web page: this is not the API, look at API_URL"},
		"page not found": {404, "", "<html>", "answers 404 Not Found with a web page"},
		"empty":          {200, "", "", "with nothing: this is not the API, look at API_URL"},
		"empty object":   {200, "", "{}", "with {}: this is not the API, look at API_URL"},
		"list":           {200, "", "[]", "with []: this is not the API"},
		"text":           {404, "", "404 page not found\n", "answers 404 Not Found with 404 page not found: this is not the API"},
		"lines":          {200, "", "x\nteled: ok", "with x teled: ok: this is not the API"},
		"redirect":       {302, "", "", `answers 302 Found with a redirect to "/else": this is not the API, look at API_URL`},
		"long text":      {200, "", strings.Repeat("x", 999), strings.Repeat("x", 200) + "…: this is not the API"},
		"502":            {502, "", "<html>", "answers 502 Bad Gateway: it, or the server behind it, is out of order"},
		"503":            {503, "", "", "503 Service Unavailable"},
		"429":            {429, "", "{}", "check again in some minutes"},
		"429 with wait":  {429, "17", "<html>", "check again in 17s"},
		"429 Telegram":   {429, "", `{"ok":false,"parameters":{"retry_after":90}}`, "check again in 1m30s"},
		"429 Discord":    {429, "1", `{"retry_after":1.5,"global":true}`, "check again in 2s"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/else")
			if tt.wait != "" {
				w.Header().Set("Retry-After", tt.wait)
			}
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		}))
		err := probeAt(t, NewCallClient(), server.URL)
		server.Close()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func TestAPICheck_NoAnswer_NamesTheCause(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	secure.StartTLS()
	t.Cleanup(secure.Close)
	unresolved := Network{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.invalid", IsNotFound: true}}
	}}
	for name, tt := range map[string]struct {
		client *http.Client
		url    string
		want   string
	}{
		"refused":     {NewCallClient(), "http://127.0.0.1:1", "nothing accepts connections there: look at API_URL"},
		"unresolved":  {unresolved.CallClient(), "http://api.invalid", "its name cannot be resolved: look at API_URL"},
		"no TLS":      {NewCallClient(), "https" + strings.TrimPrefix(plain.URL, "http"), "API_URL may have to begin with http://"},
		"certificate": {NewCallClient(), secure.URL, "its certificate is not valid"},
		"broken":      {NewCallClient(), "http://" + listen(t, func(c net.Conn) { c.Close() }), "the connection broke"},
	} {
		err := probeAt(t, tt.client, tt.url)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.url+" does not answer") || strings.Contains(err.Error(), "/call") {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func TestAPICheck_SilentServer_EndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := Network{Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, server) }() // until the client closes it
			return client, nil
		}}
		began := time.Now()
		err := probeAt(t, silent.CallClient(), "http://silent.test")
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "nothing came for 10s") || took > CheckTimeout {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func TestTokenProblem(t *testing.T) {
	for token, want := range map[string]string{
		"123:abc-DEF_1": "", "Bot 123": `begins with "Bot "`, "Bearer 123": `begins with "Bearer "`,
		" 123": "blank", "123\n": "line break", "12 3": "blank", `"123"`: "quote", "'123'": "quote", "<123>": "bracket", "“123”": "quote", "123\u200b": "U+200B", "12–3": "U+2013",
	} {
		err := TokenProblem("TOKEN", token)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "123")) {
			t.Errorf("%q: %v, want %s", token, err, want)
		}
	}
}
