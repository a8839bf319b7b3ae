package main

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/testkit/fakes/slack"
)

func TestMain(m *testing.M) {
	// The default client's connections close at their own pace.
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

// timeout is how long a test waits for an event.
const timeout = 10 * time.Second

// program is a running fakeplatform.
type program struct {
	t     *testing.T
	lines *bufio.Scanner // of its output
}

// start runs the program with flags until the test ends.
func start(t *testing.T, name string, flags ...string) program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, append([]string{name, "-addr", "127.0.0.1:0"}, flags...), in)
		in.Close()
	}()
	t.Cleanup(func() {
		cancel()
		_ = out.Close()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(timeout):
			t.Error("still running")
		}
	})
	return program{t, bufio.NewScanner(out)}
}

func (p program) line() string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatal("no more output")
	}
	return p.lines.Text()
}

// env reads n exported variables.
func (p program) env(n int) map[string]string {
	p.t.Helper()
	all := map[string]string{}
	for range n {
		line := p.line()
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok || !strings.HasPrefix(line, "export ") {
			p.t.Fatalf("printed %q", line)
		}
		all[name] = value
	}
	return all
}

// page reads the line about the page, and gets it.
func (p program) page() {
	p.t.Helper()
	address, ok := strings.CutPrefix(p.line(), "# write to the bot at ")
	if !ok {
		p.t.Fatalf("printed %q", p.lines.Text())
	}
	if resp, body := do(p.t, http.MethodGet, address, ""); resp.StatusCode != http.StatusOK || !strings.Contains(body, " · fake ") {
		p.t.Errorf("page: %d %s", resp.StatusCode, body)
	}
}

// do sends a request with headers, given as name and value.
func do(t *testing.T, method, address, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(answer)
}

func TestRun_ServesPlatforms(t *testing.T) {
	const slackSecret, form = slack.DefaultSigningSecret, "application/x-www-form-urlencoded"
	for _, tt := range []struct {
		args   []string
		env    map[string]string // printed, besides the API's base
		api    string            // its variable
		call   []string          // method, path, body, headers
		answer string
	}{
		{[]string{"telegram", "-token", "42:abc", "-privacy-off", "-rates"}, map[string]string{"TELEGRAM_BOT_TOKEN": "42:abc"},
			"TELEGRAM_API_URL", []string{"GET", "/bot42:abc/getMe", ""}, `"can_read_all_group_messages":true`},
		{[]string{"discord", "-token", "a.b.c", "-no-content", "-rates"}, map[string]string{"DISCORD_BOT_TOKEN": "a.b.c"},
			"DISCORD_API_URL", []string{"GET", "/api/v9/gateway/bot", "", "Authorization", "Bot a.b.c"}, `"url":"ws://`},
		{[]string{"slack", "-bot-token", "xoxb-42", "-rates"}, map[string]string{"SLACK_BOT_TOKEN": "xoxb-42",
			"SLACK_APP_TOKEN": slack.DefaultAppToken, "SLACK_SIGNING_SECRET": slackSecret},
			"SLACK_API_URL", []string{"POST", "auth.test", "token=xoxb-42", "Content-Type", form}, `"ok":true`},
		{[]string{"slack", "-events=http://127.0.0.1:1/slack/events"}, map[string]string{"SLACK_BOT_TOKEN": slack.DefaultBotToken,
			"SLACK_APP_TOKEN": "", "SLACK_SIGNING_SECRET": slackSecret},
			"SLACK_API_URL", []string{"POST", "auth.test", "token=" + slack.DefaultBotToken, "Content-Type", form}, `"ok":true`},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			p := start(t, tt.args[0], tt.args[1:]...)
			env := p.env(len(tt.env) + 1)
			base := env[tt.api]
			delete(env, tt.api)
			if !maps.Equal(env, tt.env) {
				t.Errorf("printed %q, want %q", env, tt.env)
			}
			p.page()
			resp, body := do(t, tt.call[0], base+tt.call[1], tt.call[2], tt.call[3:]...)
			if resp.StatusCode != http.StatusOK || !strings.Contains(body, tt.answer) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if tt.args[0] == "discord" && resp.Header.Get("X-RateLimit-Limit") == "" {
				t.Error("no limits in the headers")
			}
		})
	}
}

func TestRun_Anthropic(t *testing.T) {
	p := start(t, "anthropic", "-key", "sk-1")
	env := p.env(2)
	if env["ANTHROPIC_API_KEY"] != "sk-1" {
		t.Errorf("printed %q", env)
	}
	body := `{"model":"claude-x","max_tokens":1,"messages":[{"role":"user","content":"say hello"}]}`
	resp, answer := do(t, http.MethodPost, env["ANTHROPIC_BASE_URL"]+"/v1/messages", body, "x-api-key", "sk-1", "anthropic-version", "2023-06-01")
	if got := p.line(); resp.StatusCode != http.StatusOK || !strings.HasSuffix(got, `messages → 200 "say hello"`) {
		t.Errorf("%d %s, printed %q", resp.StatusCode, answer, got)
	}
}

func TestRun_InvalidArguments(t *testing.T) {
	tests := []struct {
		args []string
		want string // in the error
	}{
		{nil, "usage:"},
		{[]string{"matrix"}, `unknown platform "matrix"`},
		{[]string{"telegram", "-no-content"}, "flag provided but not defined"},
		{[]string{"discord", "-key", "x"}, "flag provided but not defined"},
	}
	for name := range platforms() {
		if err := run(t.Context(), []string{name, "-h"}, io.Discard); err != nil {
			t.Errorf("%s -h: %v", name, err)
		}
		for _, addr := range []string{"0.0.0.0:0", ":0", "example.org:80", "nonsense"} {
			tests = append(tests, struct {
				args []string
				want string
			}{[]string{name, "-addr", addr}, "loopback address of this machine"})
		}
	}
	for _, tt := range tests {
		if err := run(t.Context(), tt.args, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %s", tt.args, err, tt.want)
		}
	}
}
