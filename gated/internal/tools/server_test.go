package tools

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"arizuko/pkg/store/storetest"
)

type nothing struct{}

// probe is a tool of a test.
func probe(name string, handle func(ctx context.Context, c *Caller) error) Tool {
	return define(Tool{Name: name, Title: name, Description: name}, func(ctx context.Context, c *Caller, _ nothing) (nothing, error) {
		return nothing{}, handle(ctx, c)
	})
}

// holding is a probe whose calls wait until release is closed; begun gets an element for each.
func holding(name string, kind Kind) (tool Tool, begun, release chan struct{}) {
	begun, release = make(chan struct{}, 100), make(chan struct{})
	tool = probe(name, func(context.Context, *Caller) error {
		begun <- struct{}{}
		<-release
		return nil
	})
	tool.Kind = kind
	return tool, begun, release
}

// callMany calls a probe n times at once. wait returns when all have worked.
func (f *fixture) callMany(access *Access, tool string, n int) (wait func()) {
	done := make(chan bool, n)
	for range n {
		go func() {
			_, isError := f.callAs(access, tool, "{}")
			done <- !isError
		}()
	}
	return func() {
		f.t.Helper()
		for range n {
			if !<-done {
				f.t.Error("a call was refused")
			}
		}
	}
}

func TestServer_PanicInTool_CostsItsCallOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t, probe("panics", func(context.Context, *Caller) error { panic("boom") }), probe("works", func(context.Context, *Caller) error { return nil }))
	f.refused("panics", "{}", "failed inside arizuko")
	f.works("works", "{}")
	log := f.log.String()
	if !strings.Contains(log, "panic=boom") || !strings.Contains(log, "server_test.go") || !strings.Contains(log, "state=panic") {
		t.Errorf("log:\n%s", log)
	}
}

func TestServer_InternalError_IsLoggedNotShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, probe("fails", func(context.Context, *Caller) error { return context.DeadlineExceeded }),
		probe("breaks", func(context.Context, *Caller) error { return errors.New("a private reason") }))
	f.refused("fails", "{}", "try again later")
	f.refused("breaks", "{}", "failed inside arizuko")
	if text, _ := f.call("breaks", "{}"); strings.Contains(text, "private") {
		t.Errorf("the model reads %q", text)
	}
	if log := f.log.String(); !strings.Contains(log, "a private reason") {
		t.Errorf("log:\n%s", log)
	}
}

func TestServer_Calls_AreCountedByToolAndOutcome(t *testing.T) {
	f := parallel(t)
	f.works("send_message", `{"text":"x"}`)
	f.refused("send_message", `{"text":"x","y":1}`, "y")
	f.refused("reset_session", `{"groupFolder":"other"}`, "out of reach")
	got := storetest.Must(f.metrics.Gather())(t)
	counts := map[string]float64{}
	for _, family := range got {
		if family.GetName() != "arizuko_tool_calls_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			key := ""
			for _, l := range m.GetLabel() {
				key += l.GetValue() + " "
			}
			counts[key] = m.GetCounter().GetValue()
		}
	}
	for key, n := range map[string]float64{"ok send_message ": 1, "invalid send_message ": 1, "refused reset_session ": 1, "ok reset_session ": 0} {
		if counts[key] != n {
			t.Errorf("%s: %v, want %v", key, counts[key], n)
		}
	}
}

func TestServer_Log_HasNoArguments(t *testing.T) {
	f := parallel(t)
	f.works("send_message", `{"text":"the launch code"}`)
	f.refused("send_message", `{"text":"the launch code","x":1}`, "x")
	if log := f.log.String(); strings.Contains(log, "launch") || strings.Contains(log, f.access.Token()) {
		t.Errorf("log:\n%s", log)
	}
}

func TestServer_ForeignOriginOrHost_IsForbidden(t *testing.T) {
	f := parallel(t)
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"none":         {func(*http.Request) {}, http.StatusOK},
		"its own":      {func(r *http.Request) { r.Header.Set("Origin", f.server.URL) }, http.StatusOK},
		"another":      {func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, http.StatusForbidden},
		"another port": {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, http.StatusForbidden},
		"rebound name": {func(r *http.Request) { r.Host = "evil.example" }, http.StatusForbidden},
		"rebound name and origin": {func(r *http.Request) {
			r.Host = "evil.example"
			r.Header.Set("Origin", "http://evil.example")
		}, http.StatusForbidden},
	} {
		if status, _ := f.request(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, c.change); status != c.want {
			t.Errorf("%s: status %d, want %d", name, status, c.want)
		}
	}
}

func TestServer_TooLargeBody_IsRefused(t *testing.T) {
	f := parallel(t)
	arguments := `{"text":"` + strings.Repeat("x", 2<<20) + `"}`
	if status := f.post("send_message", arguments, f.access.Token()); status < 400 || status >= 500 {
		t.Errorf("status %d", status)
	}
}

func TestServer_RunEnds_ItsCallsEnd(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan error, 1)
	f := newFixture(t, probe("hangs", func(ctx context.Context, _ *Caller) error {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}))
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		f.refused("hangs", "{}", "took too long")
	}()
	<-begun
	f.access.Close()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the call goes on")
	}
	<-answered
}

func TestServer_ManyCalls_AreBoundedPerRun(t *testing.T) {
	t.Parallel()
	waits, begun, release := holding("waits", Adds)
	f := newFixture(t, waits)
	_, _, other := f.startRun("acme/eng", "telegram:-9", "hi")
	wait := f.callMany(f.access, "waits", 3*maxConcurrentCalls)
	for range maxConcurrentCalls {
		<-begun
	}
	waitOther := f.callMany(other, "waits", 1) // another run is not held up
	<-begun
	select {
	case <-begun:
		t.Error("one call too many")
	default:
	}
	close(release)
	wait()
	waitOther()
}

// Some models send null for arguments that they leave out.
func TestServer_NullArgument_IsLeftOut(t *testing.T) {
	f := parallel(t)
	f.works("send_message", `{"text":"the word null","topic":null}`)
	f.refused("send_message", `{"text":null}`, "text")
	f.refused("send_message", `{"text":"x","other":1,"topic":null}`, "other")
	f.works("list_active_context_objects", `{"allowed_kinds":null,"chat_id":null}`)
}

// Methods of capabilities that the server does not declare are unknown: there is no empty list of them.
func TestServer_UndeclaredMethods_AreUnknown(t *testing.T) {
	f := parallel(t)
	for _, method := range []string{
		"prompts/list", "prompts/get", "resources/list", "resources/templates/list", "resources/read", "resources/subscribe",
		"completion/complete", "logging/setLevel", "nonsense", "tools/nonsense", "sampling/createMessage",
	} {
		if _, answer := f.request(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{}}`, func(*http.Request) {}); !strings.Contains(answer, `"code":-32601`) {
			t.Errorf("%s: %s", method, answer)
		}
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, Path, nil)
	r.Header.Set("MCP-Protocol-Version", statelessVersion)
	if answerUnknown(w, r, []byte("1")); w.Code != http.StatusNotFound {
		t.Errorf("status %d for %s, want 404", w.Code, statelessVersion)
	}
}

// Searches of all runs together leave connections to the database for messages; calls that act, or read little, wait
// for none of them.
func TestServer_ManySearches_AreBoundedForAllRuns(t *testing.T) {
	t.Parallel()
	reads, begun, release := holding("reads", Searches)
	looks := probe("looks", func(context.Context, *Caller) error { return nil })
	looks.Kind = Reads
	f := newFixture(t, reads, looks, probe("acts", func(context.Context, *Caller) error { return nil }))
	_, _, other := f.startRun("acme/eng", "telegram:-9", "hi")
	wait, waitOther := f.callMany(f.access, "reads", 2*maxReading), f.callMany(other, "reads", 2*maxReading)
	for range maxReading {
		<-begun
	}
	f.works("acts", "{}")
	f.works("looks", "{}")
	select {
	case <-begun:
		t.Error("one read too many")
	default:
	}
	close(release)
	wait()
	waitOther()
}

func TestServer_RefusedArguments_AreNotRepeatedWhole(t *testing.T) {
	f := parallel(t)
	long := strings.Repeat("é", 30_000)
	for _, arguments := range []string{
		`{"text":"` + strings.Repeat("x", 2*maxText) + `"}`,
		`{"text":["` + long + `"]}`, `{"text":"x","` + long + `":1}`, `{"text":"x","replyTo":"` + long + `"}`, `"` + long + `"`, `["` + long + `"]`,
	} {
		if text, isError := f.call("send_message", arguments); !isError || len([]rune(text)) > 2100 || strings.Contains(text, "\ufffd") {
			t.Errorf("error %v of %d bytes: %.100s", isError, len(text), text)
		}
	}
	session := storetest.Must(f.client(f.access.Token()))(t)
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: long}); err == nil || len([]rune(err.Error())) > 2300 {
		t.Errorf("an unknown tool: %.200v", err)
	}
}
