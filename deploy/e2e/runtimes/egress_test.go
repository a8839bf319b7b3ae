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
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
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
	need.Program(t, "bwrap", "bubblewrap")
	need.Program(t, "curl", "curl")
	script := filepath.Join(t.TempDir(), "agent.sh")
	if err := os.WriteFile(script, []byte(runs), 0o755); err != nil { //nolint:gosec // agents run it as another user
		t.Fatal(err)
	}
	oneshot := build(t, "deploy/agents/oneshot")
	f := egressFixture{harness.Start(t, programs, harness.Options{Agent: "exec " + oneshot + " sh " + script, Env: []string{
		"AGENT_SANDBOX=bwrap", "AGENT_NETWORK=ask", "EGRESS_PRIVATE=127.0.0.2", "OPERATORS=telegram:5",
		"AGENT_READABLE=" + strings.Join(append(readable, oneshot, script), ","),
	}})}
	f.AddGroups("main")
	f.AddRoute("", "main")
	return f
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
	f.Put(msg.Message{ChatJID: "telegram:5", Sender: "telegram:5", Verb: msg.VerbAnswer, TargetID: "platform-" + ask,
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

	res, err := http.Get("http://" + f.Instance.Host + ":8086/metrics")
	f.OK(err)
	defer res.Body.Close()
	metrics, err := io.ReadAll(res.Body)
	f.OK(err)
	for _, want := range []string{`arizuko_egress_requests_total{state="sent"} 3`, `arizuko_egress_requests_total{state="refused"} 1`} {
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
	f.killProxy()
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

func (f egressFixture) killProxy() {
	f.T.Helper()
	pids, err := f.Instance.Processes("gated-egress")
	for _, pid := range pids {
		err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
	}
	f.OK(err)
}

// killed has gated or its proxy killed at a point while the agent works on a row, and gives each question the same answer
// until the turn has ended.
func (f egressFixture) killed(point string, proxy bool, option int, row func() int64) (turn *msg.Turn) {
	f.T.Helper()
	f.Kill(harness.Gated)
	f.Restart(harness.Gated, "FAILPOINT="+point)
	ended := func() int { return strings.Count(f.Log(harness.Gated), "egress proxy ended") }
	before, pressed, id := ended(), map[string]bool{}, row()
	until := func(what string, holds func() bool) {
		f.Until(what, func() bool {
			for _, ask := range f.Query(`SELECT '' || id FROM asks WHERE state = 'open'`) {
				if !pressed[ask] && f.deliver(ask) == nil {
					pressed[ask] = true
					f.press(ask, option)
				}
			}
			return holds()
		})
	}
	until("the end of a process", func() bool { return proxy && ended() > before || !f.Instance.Running(harness.Gated) })
	if !proxy {
		f.Restart(harness.Gated)
	}
	until("all to end", func() bool {
		return f.Value(`SELECT count(*) FROM turns t JOIN messages m ON m.turn_id = t.id WHERE m.id = ? AND t.ended_at IS NOT NULL`, id) == "1" &&
			f.Value(`SELECT (SELECT count(*) FROM asks WHERE state = 'open') + (SELECT count(*) FROM egress_receipts WHERE ended_at = 0)`) == "0"
	})
	return f.Turn(id)
}

// Whatever is killed, a request reaches its server at most once, has a receipt that says what is known, and is never sent
// after a No.
func TestEgress_KilledAtEachStep(t *testing.T) {
	const proxy, gated, once, no = true, false, 1, 4
	const unknown, unsent = "may have been sent", "refused: the proxy ended before it was sent"
	f, u := startEgress(t), newUpstream(t)
	host := strings.TrimPrefix(u.URL, "http://")
	for i, tt := range []struct {
		point  string // "" when the server has the request
		proxy  bool   // is killed; else gated
		option int
		want   string // what became of the first request
		sent   bool   // it has reached the server
	}{
		{"put-receipt.before", proxy, once, "", false},
		{"put-receipt.after", proxy, once, unsent, false},
		{"put-ask.before", gated, once, "refused: ", false},
		{"put-ask.after", gated, once, "refused: ", false},
		{"answer-ask.before", gated, once, "refused: ", false},
		{"answer-ask.after", gated, once, "refused: ", false},
		{"answer-ask.before", gated, no, "refused: ", false},
		{"answer-ask.after", gated, no, "refused: ", false},
		{"end-receipt.before", proxy, once, unsent, false},
		{"end-receipt.after", proxy, once, unknown, false},
		{"", proxy, once, unknown, true},
		{"", gated, once, "", true},
		{"end-receipt.before:2", proxy, once, unknown, true},
		{"end-receipt.after:2", proxy, once, "200, allowed by telegram:5", true},
	} {
		name := fmt.Sprintf("%d %s", i, tt.point)
		u.hook = nil
		if tt.point == "" {
			u.hook = sync.OnceFunc(map[bool]func(){proxy: f.killProxy, gated: func() { f.Signal(harness.Gated, syscall.SIGKILL) }}[tt.proxy])
		}
		turn := f.killed(tt.point, tt.proxy, tt.option, func() int64 {
			return f.run(fmt.Sprintf("mktemp -u XXXXXXXXXX | xargs -I_ curl -sS -d body %s/%d/_ || echo failed", u.URL, i))
		})
		receipts, err := egressrows.ReceiptsOfTurn(t.Context(), f.Store.Reader, turn.ID, 10)
		f.OK(err)
		sent := 0
		for n, r := range receipts {
			arrived := strings.Count(u.requests(), "POST "+r.Path+" ")
			sent += arrived
			if arrived > 1 || arrived == 1 && r.State == egress.Refused || arrived == 0 && r.State == egress.Sent || n == 0 && (arrived == 1) != tt.sent {
				t.Errorf("%s: arrived %d times: %s", name, arrived, r)
			}
		}
		if all := strings.Count(u.requests(), fmt.Sprintf("POST /%d/", i)); all != sent || tt.option == no && all != 0 {
			t.Errorf("%s: %d requests arrived, %d have receipts", name, all, sent)
		}
		if tt.want != "" && (len(receipts) == 0 || !strings.Contains(receipts[0].String(), tt.want)) {
			t.Errorf("%s: receipts %v", name, receipts)
		}
		for _, card := range f.Query(`SELECT '' || ifnull((SELECT content FROM messages e WHERE e.derived_from = a.message_id), m.out_state)
			FROM asks a JOIN messages m ON m.id = a.message_id WHERE a.turn_id = ` + strconv.FormatInt(turn.ID, 10)) {
			ended := strings.Contains(card, "answered by") || strings.Contains(card, "Not sent: ")
			if card != string(msg.OutCancelled) && (!ended || !strings.Contains(card, "Allow POST "+host)) {
				t.Errorf("%s: card %q", name, card)
			}
		}
	}
}
