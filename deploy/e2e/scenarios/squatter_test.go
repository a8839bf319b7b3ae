package scenarios

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

// squatter is a program of another user that listens on a daemon's port. It answers yes to everything.
type squatter struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

func squat(t *testing.T, addr string) *squatter {
	t.Helper()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &squatter{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, _ := httputil.DumpRequest(r, true) // what is left of one that breaks off
		s.mu.Lock()
		s.requests = append(s.requests, string(request))
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"code":"AAAA-0001","created":true,"state":"approved","text":"owned","groups":[],"items":[{"id":1,"action":"trigger","folder":"evil"}]}`)
	}))
	s.Listener.Close()
	s.Listener = listener
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// got is what it was sent.
func (s *squatter) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.requests, "\n")
}

// wantSigned fails the test unless each request is signed, and has neither the secret nor a text. On a server the daemon with a lease
// is called at its port, wherever it runs.
func (s *squatter) wantSigned(f *harness.Fixture) {
	f.T.Helper()
	secret, err := f.Instance.Secret()
	f.OK(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		signed := strings.Contains(r, "\nAuthorization: Arizuko ")
		if !signed || strings.Contains(r, secret) || strings.Contains(r, "let me in") || strings.Contains(r, "hello") {
			f.T.Errorf("%s was sent:\n%s", s.Listener.Addr(), r)
		}
	}
}

// runWith runs a command and wants its exit code and a part of its output.
func runWith(f *harness.Fixture, code int, part, program string, args ...string) {
	f.T.Helper()
	cmd := f.Instance.Command(program, args...)
	out, _ := cmd.CombinedOutput() // the exit code has the error
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), part) {
		f.T.Errorf("%s %q: exit %d, want %d with %q:\n%s", program, args, got, code, part, out)
	}
}

// TestSquatter_OnEachPort_GainsNothing: a program on the ports of daemons that do not run, or restart, is
// sent nothing, on a server signed requests alone, and a daemon whose port is taken says so.
func TestSquatter_OnEachPort_GainsNothing(t *testing.T) {
	f := harness.NewFixture(t, programs, harness.Options{})
	f.Migrate()
	var all []*squatter
	for _, name := range []string{"onbod", "dashd", "teled", "discd", "slakd"} {
		all = append(all, squat(t, f.Instance.Addr(name)))
	}
	runWith(f, 1, "address already in use", "dashd") // others do without their port
	for _, name := range []string{harness.Routd, harness.Gated} {
		f.StartDaemon(name)
		f.WaitReady(name)
	}
	f.AddGroups("main")
	f.AddRoute("chat_jid=telegram:5", "main")

	stranger := f.Put(msg.Message{ChatJID: "telegram:77", Sender: "telegram:77", Content: "let me in"})[0]
	f.AllowUndecided(stranger)
	f.WantReply(f.Say("telegram:5", "/status"), "The status is unavailable: dashd is not responding. Try again later, or ask an operator to start it.")
	f.Kill(harness.Routd)
	late := squat(t, f.Instance.Addr(harness.Routd))
	waiting := f.Say("telegram:5", "hello")
	f.WantReply(f.Say("telegram:5", "/ping"), "pong")
	runWith(f, 1, "routd is not running at ", "routd", "routes", "list")
	runWith(f, 1, "routd.http.sock does not answer", "routd", "health")
	runWith(f, 1, "onbod is not running at ", "onbod", "requests")
	runWith(f, 1, "dashd is not running at ", "dashd", "login")
	runWith(f, 1, "routd", "dashd", "doctor")
	for _, id := range []int64{stranger, waiting} {
		if m := f.Row(id); m.Disposition != "" {
			t.Errorf("%q is decided without a route: %s/%s", m.Content, m.Disposition, m.Reason)
		}
	}
	squatters := all
	if storetest.Server() == "" {
		squatters = append(squatters, late)
	}
	for _, s := range squatters {
		if got := s.got(); got != "" {
			t.Errorf("%s was sent:\n%s", s.Listener.Addr(), got)
		}
	}
	late.wantSigned(f)
	late.Close()
	f.Restart(harness.Routd)
	f.WantEchoes("telegram:5", "hello")
}

// TestSquatter_AtURL_GetsNoSecretAndNoSay: a URL that leads to another program.
func TestSquatter_AtURL_GetsNoSecretAndNoSay(t *testing.T) {
	s := squat(t, "127.0.0.1:0")
	f := harness.NewFixture(t, programs, harness.Options{})
	f.Migrate()
	f.StartDaemon(harness.Routd)
	f.WaitReady(harness.Routd)
	f.AddGroups("main")
	f.AddRoute("chat_jid=telegram:5", "main")
	f.StartDaemon(harness.Gated, "ROUTD_URL="+s.URL, "ONBOD_URL="+s.URL, "DASHD_URL="+s.URL)
	f.WaitReady(harness.Gated)
	waiting := f.Say("telegram:5", "hello")
	f.WantReply(f.Say("telegram:5", "/status"), "The status is unavailable: dashd is not responding. Try again later, or ask an operator to start it.")
	f.Until("routd to be asked", func() bool { return strings.Contains(s.got(), "/v1/resolve") })
	secret, err := f.Instance.Secret()
	f.OK(err)
	if strings.Contains(s.got(), secret) {
		t.Errorf("the secret was sent:\n%s", s.got())
	}
	if m := f.Row(waiting); m.Disposition != "" {
		t.Errorf("decided without a route: %s/%s", m.Disposition, m.Reason)
	}
	f.Kill(harness.Gated)
	f.Restart(harness.Gated, "ROUTD_URL="+f.Instance.URL(harness.Routd)) // signed, over TCP
	f.WantEchoes("telegram:5", "hello")
}
