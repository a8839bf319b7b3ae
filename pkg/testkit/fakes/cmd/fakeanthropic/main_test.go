package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error)
	go func() { done <- run(ctx, []string{"-addr", "127.0.0.1:0", "-key", "sk-1"}, in) }()
	lines := bufio.NewScanner(out)
	next := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("no more output")
		}
		return lines.Text()
	}
	if got := next(); got != "export ANTHROPIC_API_KEY=sk-1" {
		t.Errorf("printed %q", got)
	}
	base, ok := strings.CutPrefix(next(), "export ANTHROPIC_BASE_URL=")
	if !ok {
		t.Fatalf("printed %q", lines.Text())
	}
	body := `{"model":"claude-x","max_tokens":1,"messages":[{"role":"user","content":"say hello"}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", "sk-1")
	req.Header.Set("anthropic-version", "2023-06-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := next(); resp.StatusCode != 200 || !strings.HasSuffix(got, `messages → 200 "say hello"`) {
		t.Errorf("%d, printed %q", resp.StatusCode, got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWrongArguments(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:1", ":1", "example.org:1", "nonsense"} {
		if err := run(t.Context(), []string{"-addr", addr}, io.Discard); err == nil || !strings.Contains(err.Error(), "this machine") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
