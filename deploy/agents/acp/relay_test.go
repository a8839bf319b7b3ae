package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestRelay_PassesMessagesOn(t *testing.T) {
	var calls []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		calls = append(calls, m.Method+" "+r.Header.Get("Authorization"))
		switch m.Method {
		case "initialize":
			_, _ = io.WriteString(w, "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}")
		case "tools/call":
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"two","result":{}}`)
		default:
			w.WriteHeader(map[string]int{"notifications/initialized": 202}[m.Method] + map[string]int{"odd": 500}[m.Method])
		}
	}))
	defer server.Close()
	var out bytes.Buffer
	r := &toolRelay{url: server.URL, token: "t", out: &out}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"two","method":"tools/call"}`, `{"jsonrpc":"2.0","id":3,"method":"odd"}`,
	} {
		if err := r.run(strings.NewReader(line + "\n\n")); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`,
		`{"jsonrpc":"2.0","id":"two","result":{}}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"arizuko's tools cannot be reached"}}`,
	}
	if got := strings.Split(strings.TrimSpace(out.String()), "\n"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if want := []string{
		"initialize Bearer t", "notifications/initialized Bearer t", "tools/call Bearer t", "odd Bearer t",
	}; !slices.Equal(calls, want) {
		t.Errorf("calls %q", calls)
	}
	if err := r.run(strings.NewReader("no JSON\n")); err == nil {
		t.Error("no error")
	}
}
