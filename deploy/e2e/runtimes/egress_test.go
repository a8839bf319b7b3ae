package runtimes

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// runs is an agent that runs the command between RUN and END in its last message, and answers with what that prints.
const runs = `#!/bin/sh
sed -n 's/.*RUN \(.*\) END.*/\1/p' | tail -n 1 | sed 's/&amp;/\&/g; s/&lt;/</g; s/&gt;/>/g' | sh 2>&1
`

// upstream is a server outside of the sandbox that notes what reaches it.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string
	hook func() // called before a request is answered; nil for nothing
}

// newUpstream listens on an address of loopback that programs don't take for their own.
func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{}
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	u.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.got = append(u.got, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Authorization"), body))
		if u.hook != nil {
			u.hook()
		}
		fmt.Fprintf(w, "hello, %s\n", r.Header.Get("Authorization"))
	}))
	u.Listener = l
	u.Start()
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) requests() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return strings.Join(u.got, "\n")
}

// egressFixture is an instance whose agents have no network but the egress proxy.
type egressFixture struct{ *harness.Fixture }

func startEgress(t *testing.T, readable ...string) egressFixture {
	t.Helper()
	env := egressEnv(t, readable...)
	f := egressFixture{harness.Start(t, programs, harness.Options{Env: env})}
	f.AddGroups("main")
	f.AddRoute("", "main")
	return f
}

// egressEnv is the environment of its gated. readable are the programs that agents run besides their own.
func egressEnv(t *testing.T, readable ...string) []string {
	t.Helper()
	need.Program(t, "bwrap", "bubblewrap")
	need.Program(t, "curl", "curl")
	script := filepath.Join(t.TempDir(), "agent.sh")
	if err := os.WriteFile(script, []byte(runs), 0o755); err != nil { //nolint:gosec // agents run it as another user
		t.Fatal(err)
	}
	oneshot := build(t, "deploy/agents/oneshot")
	return []string{
		"AGENT_SANDBOX=bwrap", "AGENT_NETWORK=ask", "EGRESS_PRIVATE=127.0.0.2", "OPERATORS=telegram:5",
		"AGENT_COMMAND=exec " + oneshot + " sh " + script,
		"AGENT_READABLE=" + strings.Join(append(readable, oneshot, script), ","),
	}
}

// run has the agent run a command.
func (f egressFixture) run(command string) (row int64) {
	return f.Put(msg.Message{ChatJID: "telegram:5", Sender: "telegram:5", Content: "RUN " + command + " END"})[0]
}

// question waits for the open question, delivers it, and returns its id and text.
func (f egressFixture) question() (id, text string) {
	f.T.Helper()
	f.Until("a question", func() bool {
		id = f.Value(`SELECT ifnull(max(id), '') FROM asks WHERE state = 'open'`)
		return id != ""
	})
	f.OK(f.deliver(id))
	return id, f.Value(`SELECT question FROM asks WHERE id = ?`, id)
}

// deliver has a question shown by the platform. The error is of one that has ended.
func (f egressFixture) deliver(ask string) error {
	shown, err := strconv.ParseInt(f.Value(`SELECT message_id FROM asks WHERE id = ?`, ask), 10, 64)
	f.OK(err)
	return f.Adapter.Sent(f.T.Context(), shown, "platform-"+ask, time.Now())
}

// press answers a question with an option, from 1.
func (f egressFixture) press(ask string, option int) {
	f.T.Helper()
	chat := f.Value(`SELECT m.chat_jid FROM asks a JOIN messages m ON m.id = a.message_id WHERE a.id = ?`, ask)
	f.Put(msg.Message{ChatJID: chat, Sender: "telegram:5", Verb: msg.VerbAnswer, TargetID: "platform-" + ask,
		Content: fmt.Sprintf(`{"ask":%s,"option":%d}`, ask, option)})
}

func TestEgress_Ask_NothingLeavesWithoutAnAnswer(t *testing.T) {
	f, u := startEgress(t), newUpstream(t)
	allowed := f.run("curl -sS -d body " + u.URL + "/a/b?x=1")
	ask, text := f.question()
	if !strings.Contains(text, "Allow POST "+strings.TrimPrefix(u.URL, "http://")+"/a/b (4 bytes)?") || !strings.Contains(text, "x=1") ||
		!strings.Contains(text, "body: body") || u.requests() != "" {
		t.Errorf("question %q, requests %q", text, u.requests())
	}
	f.press(ask, 1)
	if got := f.Answer(allowed); !strings.Contains(got, "hello") || u.requests() != "POST /a/b?x=1  body" {
		t.Errorf("answer %q, requests %q", got, u.requests())
	}
	if got := f.Value(`SELECT state || ' ' || status || ' ' || decided_by || ' ' || path FROM egress_receipts`); got != "sent 200 telegram:5 /a/b?x=…" {
		t.Errorf("receipt %q", got)
	}

	refused := f.run("curl -sS " + u.URL + "/c")
	ask, _ = f.question()
	f.press(ask, 4)
	if got := f.Answer(refused); !strings.Contains(got, "arizuko: ") || strings.Contains(u.requests(), "/c") {
		t.Errorf("answer %q, requests %q", got, u.requests())
	}

	always := f.run("curl -sS " + u.URL + "/d/e; curl -sS " + u.URL + "/d/f")
	ask, _ = f.question()
	f.press(ask, 3)
	if got := f.Answer(always); strings.Count(got, "hello") != 2 || !strings.Contains(u.requests(), "/d/f") {
		t.Errorf("answer %q, requests %q", got, u.requests())
	}

	both := f.run("curl -sS " + u.URL + "/g/h; curl -sS " + u.URL + "/g/i")
	ask, _ = f.question()
	f.press(ask, 2)
	f.Answer(both)
	if got := f.Value(`SELECT count(*) FROM egress_receipts WHERE path LIKE '/g/%' AND state = 'sent' AND ask_id = ?`, ask); got != "2" {
		t.Errorf("%s receipts name the question that allowed both", got)
	}

	res, err := http.Get("http://" + f.Instance.Host + ":8086/metrics")
	f.OK(err)
	defer res.Body.Close()
	metrics, err := io.ReadAll(res.Body)
	f.OK(err)
	for _, want := range []string{`arizuko_egress_requests_total{state="sent"} 5`, `arizuko_egress_requests_total{state="refused"} 1`} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
}

// TestEgress_NoOtherWayOut: what an agent sends by hand is what a rule allows, or is not sent. The rule allows /ok/ alone.
func TestEgress_NoOtherWayOut(t *testing.T) {
	attacker := build(t, "pkg/testkit/fakes/cmd/attacker")
	f, u := startEgress(t, attacker), newUpstream(t)
	host := strings.TrimPrefix(u.URL, "http://")
	for _, rule := range []string{`{"host":"` + host + `","action":"deny"}`, `{"host":"` + host + `","path":"/ok/","action":"pass"}`} {
		f.OK(f.Client(harness.Gated).Do(t.Context(), http.MethodPost, "/v1/egress/rules", json.RawMessage(rule), nil))
	}
	const proxy = "127.0.0.1:8085"
	attack := func(orders ...string) string {
		return "printf '%s\\n' '" + strings.Join(orders, "' '") + "' | " + attacker
	}
	head := ` HTTP/1.1\r\nHost: ` + host + `\r\nAUTH\r\n`
	attacks := []struct{ command, want string }{
		{"curl -sS -m 5 " + u.URL + "/ok/a", "hello, "},
		{"curl -sS -m 5 " + u.URL + "/secret", "a rule forbids"},
		{"curl -sS -m 5 --path-as-is " + u.URL + "/ok/../secret", "plain form"},
		{"curl -sS -m 5 --noproxy '*' " + u.URL + "/secret", "curl: (7)"},
		{"curl -sS -m 5 --noproxy '*' http://169.254.169.254/secret", "curl: (7)"},
		{"curl -sS -m 5 http://169.254.169.254/secret", "agents cannot reach"},
		{"curl -sS -m 5 http://10.0.0.1/secret", "agents cannot reach"},
		{"curl -sS -m 5 http://[::1]:8080/secret", "agents cannot reach"},
		{"curl -sS -m 5 -p http://127.0.0.1:8080/secret --noproxy x", "403"},
		{"curl -sS -m 5 -x http://" + proxy + " " + u.URL + "/ok/secret", "log in"},
		{"curl -sS -m 5 -x http://run:1.x@" + proxy + " " + u.URL + "/ok/secret", "log in"},
		{"curl -sS -m 5 -p -H 'Host: example.com' " + u.URL + "/ok/secret", "Host header"},
		{"curl -sS -m 5 -H 'Upgrade: h2c' -H 'Connection: Upgrade' " + u.URL + "/ok/secret", "the upgrade"},
		{"curl -sS -m 5 --http2-prior-knowledge -p " + u.URL + "/ok/secret", "curl: ("},
		{attack("talk " + proxy + " GET " + u.URL + "/ok/b" + head + `Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`), "400 Bad Request"},
		{attack("talk " + proxy + " POST " + u.URL + "/ok/c" + head + `Connection: close\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n` +
			`0\r\n\r\nGET ` + u.URL + "/secret" + head + `\r\n`), "200 OK"},
		{"getent hosts example.com || echo no name", "no name"},
	}
	for _, order := range []string{"dial udp:127.0.0.2:53", "raw 127.0.0.2", "dial vsock:1024", "bound " + host, "resolve example.com", "dial " + host} {
		attacks = append(attacks, struct{ command, want string }{attack(order), `"no `})
	}
	var all strings.Builder
	for _, a := range attacks {
		fmt.Fprintf(&all, "echo @@; %s\n", a.command)
	}
	script := base64.StdEncoding.EncodeToString([]byte(all.String()))
	answer := f.Answer(f.run("echo " + script + " | base64 -d | sh"))
	got := strings.Split(answer, "@@")[1:]
	if len(got) != len(attacks) {
		t.Fatalf("%d answers of %d: %q", len(got), len(attacks), answer)
	}
	for i, a := range attacks {
		if !strings.Contains(got[i], a.want) {
			t.Errorf("%s: %q, want %q", a.command, got[i], a.want)
		}
	}
	if got := u.requests(); strings.Contains(got, "secret") || strings.Count(got, "/ok/") != 2 {
		t.Errorf("requests %q", got)
	}
}

// A proxy that is killed sends nothing that it was asked about, and its question ends.
func TestEgress_ProxyKilled_AsksAgainOrRefuses(t *testing.T) {
	f, u := startEgress(t), newUpstream(t)
	row := f.run("curl -sS -d body " + u.URL + "/a || echo failed")
	ask, _ := f.question()
	f.OK(killProxy(f.Instance))
	f.Until("the question to end", func() bool { return f.Value(`SELECT state FROM asks WHERE id = ?`, ask) != "open" })
	f.press(ask, 1)
	if got := f.Answer(row); !strings.Contains(got, "failed") || u.requests() != "" {
		t.Errorf("answer %q, requests %q", got, u.requests())
	}
	f.Until("the receipt to end", func() bool { return f.Value(`SELECT state FROM egress_receipts`) == "refused" })
	f.Until("the next proxy", func() bool { return strings.Count(f.Log(harness.Gated), "msg=ready daemon=egress") == 2 })
	again := f.run("curl -sS " + u.URL + "/b")
	ask, _ = f.question()
	f.press(ask, 1)
	if got := f.Answer(again); !strings.Contains(got, "hello") {
		t.Errorf("after a restart of the proxy: %q", got)
	}
}

func killProxy(i *harness.Instance) error {
	pids, err := i.Processes("gated-egress")
	for _, pid := range pids {
		err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
	}
	return err
}
