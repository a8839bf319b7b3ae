package runtimes

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/telegram"
	"arizuko/pkg/testkit/need"
	"arizuko/pkg/testkit/postgres"
)

// egressProxy is what the tests here kill besides daemons.
const egressProxy = "the proxy"

// The options of a question.
const (
	once = 1 + iota
	turn
	always
	no
)

// userChat is where a user writes to the agent and answers its questions.
type userChat struct {
	jid   string
	write func(text string) error
	press func(ask string, option int) error // an error if the question isn't shown, or has ended
}

// foreignChat is a chat without a daemon of its own.
func (f egressFixture) foreignChat() userChat {
	const jid = "telegram:5"
	return userChat{jid, func(text string) error {
		f.Put(msg.Message{ChatJID: jid, Sender: jid, Content: text})
		return nil
	}, func(ask string, option int) error {
		err := f.deliver(ask)
		if err == nil {
			f.press(ask, option)
		}
		return err
	}}
}

// webChat is that of the group main. dashd serves it.
func (f egressFixture) webChat() userChat {
	f.Restart("dashd")
	dashd := f.Client("dashd")
	return userChat{"web:main", func(text string) error {
		return dashd.Do(f.T.Context(), http.MethodPost, "/chat/main/messages", map[string]any{"text": text, "client_id": rand.Text()}, nil)
	}, func(ask string, option int) error {
		shown, err := strconv.ParseInt(f.Value(`SELECT m.id FROM asks a JOIN messages m ON m.id = a.message_id
			WHERE a.id = ? AND m.out_state = 'sent'`, ask), 10, 64)
		if err != nil {
			return err
		}
		return dashd.Do(f.T.Context(), http.MethodPost, "/chat/main/answers", map[string]any{"id": shown, "option": option}, nil)
	}}
}

// telegramChats are DMs that teled serves. left presses a button of each question that still has some, so that they go,
// and returns the texts of those: a killed teled may leave a copy. It returns when teled has nothing more to do.
func (f egressFixture) telegramChats(users ...string) (chats []userChat, left func() []string) {
	sim := chatsim.NewTelegram(chatsim.Size{}, telegram.Options{})
	f.OnClose(func() { _ = sim.Close() })
	env, err := sim.Serve(f.Instance.Host)
	f.OK(err)
	f.Instance.Env = append(f.Instance.Env, env...)
	f.Restart("teled")
	labels := map[int]string{once: "Once", turn: "For this turn", always: msg.EgressAlways, no: "No"}
	for _, user := range users {
		dm := sim.NewDM(user)
		chats = append(chats, userChat{dm.Chat, func(text string) error {
			_, err := sim.Do(chatsim.Action{Conversation: dm, Verb: msg.VerbMessage, Text: text})
			return err
		}, func(ask string, option int) error {
			shown := f.Value(`SELECT m.platform_id FROM asks a JOIN messages m ON m.id = a.message_id WHERE a.id = ?`, ask)
			_, err := sim.Press(dm, shown, labels[option], false)
			return err
		}})
	}
	return chats, func() (open []string) {
		for _, a := range sim.Arrivals() {
			dm := chatsim.Conversation{Chat: a.Chat}
			isOpen := func() (string, bool) { // an answer may have an Undo button
				shown, text := sim.Buttons(dm, a.ID)
				return text, slices.Contains(shown, labels[once])
			}
			if text, is := isOpen(); is {
				open = append(open, text)
				_, err := sim.Press(dm, a.ID, labels[once], false)
				f.OK(err)
				f.Until("the buttons of a copy to go", func() bool { _, is := isOpen(); return !is })
			}
		}
		f.Until("updates to be confirmed and copies edited", func() bool { return sim.AllAcknowledged() && f.delivered() })
		return open
	}
}

// killed has a process killed at a point while the agent runs a command, and gives each question the same answer until all
// has ended. The proxy's points are set for gated, which starts it.
func (f egressFixture) killed(process, point string, option int, in userChat, command string) *msg.Turn {
	f.T.Helper()
	daemon := process
	if process == egressProxy {
		daemon = harness.Gated
	}
	f.Kill(daemon)
	f.Restart(daemon, "FAILPOINT="+point)
	ended := func() int { return strings.Count(f.Log(harness.Gated), "egress proxy ended") }
	newest := func() string {
		return f.Value(`SELECT max(id) FROM messages WHERE chat_jid = ? AND direction = 'in' AND verb = 'message'`, in.jid)
	}
	before, pressed, id, former := ended(), map[string]bool{}, "", newest()
	until := func(what string, holds func() bool) {
		f.T.Helper()
		f.Until(what, func() bool {
			for _, ask := range f.Query(`SELECT '' || id FROM asks WHERE state = 'open'`) {
				if !pressed[ask] {
					pressed[ask] = in.press(ask, option) == nil
				}
			}
			return holds()
		})
	}
	f.OK(in.write("RUN " + command + " END"))
	until(process+" to be killed at "+point, func() bool { return process == egressProxy && ended() > before || !f.Instance.Running(daemon) })
	if !f.Instance.Running(daemon) {
		f.Restart(daemon)
	}
	until("all to end", func() bool {
		id = newest()
		return id != former && f.Value(`SELECT count(*) FROM turns t JOIN messages m ON m.turn_id = t.id WHERE m.id = ? AND t.ended_at IS NOT NULL`, id) == "1" &&
			f.Value(`SELECT (SELECT count(*) FROM asks WHERE state = 'open') + (SELECT count(*) FROM egress_receipts WHERE ended_at = 0)`) == "0"
	})
	row, err := strconv.ParseInt(id, 10, 64)
	f.OK(err)
	return f.Turn(row)
}

// wantConsistent checks that each request of a turn, whose paths begin with a folder, has reached its server at most once,
// has a receipt that says what is known, and was not sent after a No; and that the turn's questions say how they ended. It
// returns the receipts.
func (f egressFixture) wantConsistent(name string, u *upstream, folder string, option int, t *msg.Turn) []*egress.Receipt {
	f.T.Helper()
	receipts, err := egressrows.ReceiptsOfTurn(f.T.Context(), f.Store.Reader, t.ID, 10)
	f.OK(err)
	sent := 0
	for _, r := range receipts {
		arrived := strings.Count(u.requests(), "POST "+r.Path+" ")
		sent += arrived
		if arrived > 1 || arrived == 1 && r.State == egress.Refused || arrived == 0 && r.State == egress.Sent {
			f.T.Errorf("%s: arrived %d times: %s", name, arrived, r)
		}
	}
	if all := strings.Count(u.requests(), "POST "+folder); all != sent || option == no && all != 0 {
		f.T.Errorf("%s: %d requests arrived, %d have receipts", name, all, sent)
	}
	for _, card := range f.Query(`SELECT '' || ifnull((SELECT content FROM messages e WHERE e.derived_from = a.message_id), m.out_state)
			FROM asks a JOIN messages m ON m.id = a.message_id WHERE a.turn_id = ` + strconv.FormatInt(t.ID, 10)) {
		ended := strings.Contains(card, "answered by") || strings.Contains(card, "Not sent: ")
		if card != string(msg.OutCancelled) && (!ended || !strings.Contains(card, "Allow POST "+strings.TrimPrefix(u.URL, "http://"))) {
			f.T.Errorf("%s: card %q", name, card)
		}
	}
	return receipts
}

// delivered reports whether no outbound row waits.
func (f egressFixture) delivered() bool {
	return f.Value(`SELECT count(*) FROM messages WHERE direction = 'out' AND out_state IN ('queued', 'sending')`) == "0"
}

// post is a command that sends one request below a folder, each time to another path.
func (u *upstream) post(folder string) string {
	return fmt.Sprintf("mktemp -u XXXXXXXXXX | xargs -I_ curl -sS -d body %s%s_ || echo failed", u.URL, folder)
}

// Whatever is killed, a request reaches its server at most once, has a receipt that says what is known, and is never sent
// after a No.
func TestEgress_KilledAtEachStep(t *testing.T) {
	const unknown, unsent = "may have been sent", "refused: the proxy ended before it was sent"
	f, u := startEgress(t), newUpstream(t)
	in := f.foreignChat()
	for i, tt := range []struct {
		point   string // "" when the server has the request
		process string // is killed
		option  int
		want    string // what became of the first request
		sent    bool   // it has reached the server
	}{
		{"put-receipt.before", egressProxy, once, "", false},
		{"put-receipt.after", egressProxy, once, unsent, false},
		{"put-ask.before", harness.Gated, once, "refused: ", false},
		{"put-ask.after", harness.Gated, once, "refused: ", false},
		{"answer-ask.before", harness.Gated, once, "refused: ", false},
		{"answer-ask.after", harness.Gated, once, "refused: ", false},
		{"answer-ask.before", harness.Gated, no, "refused: ", false},
		{"answer-ask.after", harness.Gated, no, "refused: ", false},
		{"end-receipt.before", egressProxy, once, unsent, false},
		{"end-receipt.after", egressProxy, once, unknown, false},
		{"", egressProxy, once, unknown, true},
		{"", harness.Gated, once, "", true},
		{"end-receipt.before:2", egressProxy, once, unknown, true},
		{"end-receipt.after:2", egressProxy, once, "200, allowed by telegram:5", true},
	} {
		name, folder := fmt.Sprintf("%d %s", i, tt.point), fmt.Sprintf("/%d/", i)
		u.hook = nil
		if tt.point == "" {
			u.hook = sync.OnceFunc(map[string]func(){
				egressProxy: func() { f.OK(killProxy(f.Instance)) }, harness.Gated: func() { f.Signal(harness.Gated, syscall.SIGKILL) },
			}[tt.process])
		}
		receipts := f.wantConsistent(name, u, folder, tt.option, f.killed(tt.process, tt.point, tt.option, in, u.post(folder)))
		if len(receipts) > 0 && strings.Contains(u.requests(), "POST "+receipts[0].Path+" ") != tt.sent {
			t.Errorf("%s: has reached the server: %t: %s", name, !tt.sent, receipts[0])
		}
		if tt.want != "" && (len(receipts) == 0 || !strings.Contains(receipts[0].String(), tt.want)) {
			t.Errorf("%s: receipts %v", name, receipts)
		}
	}
}

// A request is held while the adapter that shows its question is killed, and gets the answer then.
func TestEgress_AdapterKilledAtEachStep(t *testing.T) {
	f, u := startEgress(t), newUpstream(t)
	f.SetGroup("main", `{"rate":0,"progress":"off"}`) // no previews, so that messages are counted
	dms, left := f.telegramChats("Alice")
	chats := map[string]userChat{"teled": dms[0], "dashd": f.webChat()}
	for i, tt := range []struct {
		point   string
		options []int
	}{
		{"claim-outbound.after", []int{once}}, // the question
		{"sending", []int{once}},
		{"sent", []int{once}},
		{"settle-outbound.after", []int{once, no}},
		{"received:2", []int{once, no}}, // the press
		{"put-message.before:2", []int{once, no}},
		{"put-message.after:2", []int{once, no}},
		{"pressed", []int{once, no}},
		{"claim-outbound.after:2", []int{once, no}}, // the edit of the question
		{"sending:2", []int{once}},
		{"sent:2", []int{once}},
		{"settle-outbound.after:2", []int{once, no}},
	} {
		for daemon, in := range chats {
			if tt.point == "pressed" && daemon == "dashd" {
				continue // the page posts the press again
			}
			for _, option := range tt.options {
				name, folder := fmt.Sprintf("%s %s %d", daemon, tt.point, option), fmt.Sprintf("/%s/%d/%d/", daemon, i, option)
				ended := f.killed(daemon, tt.point, option, in, u.post(folder))
				f.Until("all to be delivered", f.delivered)
				if n := f.Value(`SELECT count(*) FROM messages e JOIN asks a ON a.message_id = e.derived_from WHERE a.turn_id = ? AND e.out_state = 'sent'
					AND e.content LIKE '%answered by%'`, ended.ID); n != "1" {
					t.Errorf("%s: %s questions show their answer", name, n)
				}
				receipts := f.wantConsistent(name, u, folder, option, ended)
				if open := left(); (len(open) == 1) != (daemon == "teled" && tt.point == "sent") || len(open) > 1 {
					t.Errorf("%s: questions with buttons: %q", name, open)
				}
				want, arrives := "200, allowed by ", 1
				if option == no {
					want, arrives = "refused by ", 0
				}
				if len(receipts) != 1 || !strings.Contains(receipts[0].String(), want) || strings.Count(u.requests(), folder) != arrives {
					t.Errorf("%s: receipts %v, requests %q", name, receipts, u.requests())
				}
			}
		}
	}
}

// Each of two gated on one database sends what was allowed to its own agents, once, wherever the answer is decided. The
// questions of one that is killed, last here, end, and are asked again with its turns.
func TestEgress_TwoGated_AnswerTheirOwnQuestions(t *testing.T) {
	need.Verify(t)
	server, err := postgres.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	shared := egressEnv(t)
	f, u := egressFixture{harness.NewFixture(t, programs, harness.Options{Env: shared})}, newUpstream(t)
	bin, err := programs.Bin()
	f.OK(err)
	second, err := harness.New(bin)
	f.OK(err)
	t.Cleanup(func() { f.OK(errors.Join(second.StopAll(context.Background()), second.Close())) })
	second.Env = append(second.Env, shared...)
	type machine struct {
		*harness.Instance
		chat, group string
	}
	machines := []machine{{f.Instance, "telegram:5", "main"}, {second, "telegram:6", "other"}}
	for _, m := range machines {
		m.UseDatabase(server.URL())
		f.OK(os.WriteFile(filepath.Join(m.Data, "secret"), []byte(strings.Repeat("secret", 8)), 0o600))
		m.Env = append(m.Env, "ARIZUKO_HOST="+m.group, "GATED_GROUPS="+m.group)
	}
	f.Migrate()
	f.Restart(harness.Routd)
	for _, m := range machines {
		f.AddGroups(m.group)
		f.AddRoute("chat_jid="+m.chat, m.group)
		f.OK(m.StartReady(t.Context(), harness.Gated))
	}

	open := func(m machine) (ask string) {
		f.Until("a question in "+m.chat, func() bool {
			ask = f.Value(`SELECT max(a.id) FROM asks a JOIN messages m ON m.id = a.message_id WHERE a.state = 'open' AND m.chat_jid = ?`, m.chat)
			return ask != ""
		})
		f.OK(f.deliver(ask))
		return ask
	}
	for round, tt := range []struct {
		first, last int    // machines, by whose question is answered first
		refused     string // why the last one's request was not sent, "" for a user's No
	}{{0, 1, ""}, {0, 1, "refused: "}, {1, 0, "refused: the proxy ended before it was sent"}} {
		var rows [2]int64
		var asks, folders [2]string
		for i, m := range machines {
			folders[i] = fmt.Sprintf("/%s/%d/", m.group, round)
			rows[i] = f.Put(msg.Message{ChatJID: m.chat, Sender: "telegram:5", Content: "RUN " + u.post(folders[i]) + " END"})[0]
			asks[i] = open(m)
		}
		first, last, option, killed := tt.first, tt.last, no, tt.refused != ""
		if killed {
			f.OK(machines[last].Process(harness.Gated).Signal(syscall.SIGSTOP))
			if strings.Contains(tt.refused, "the proxy ended") {
				f.OK(killProxy(machines[last].Instance))
			}
			f.OK(machines[last].Kill(harness.Gated))
			f.Until("the question of the killed gated to end", func() bool { return f.Value(`SELECT state FROM asks WHERE id = ?`, asks[last]) == "expired" })
		}
		f.press(asks[first], once)
		if answer := f.Answer(rows[first]); !strings.Contains(answer, "hello") || strings.Contains(u.requests(), folders[last]) {
			t.Errorf("round %d: answer %q, requests %q", round, answer, u.requests())
		}
		again := asks[last]
		if killed {
			f.OK(machines[last].StartReady(t.Context(), harness.Gated))
			again, option = open(machines[last]), once
		}
		f.press(again, option)
		if answer := f.Answer(rows[last]); strings.Contains(answer, "hello") != (option == once) {
			t.Errorf("round %d: answer %q", round, answer)
		}
		f.wantConsistent(fmt.Sprint(round), u, folders[first], once, f.Turn(rows[first]))
		receipts := f.wantConsistent(fmt.Sprint(round), u, folders[last], option, f.Turn(rows[last]))
		if !strings.Contains(receipts[0].String(), cmp.Or(tt.refused, "refused by telegram:5")) || strings.Count(u.requests(), folders[first]) != 1 {
			t.Errorf("round %d: receipts %v, requests %q", round, receipts, u.requests())
		}
	}
	if owners := f.Value(`SELECT count(DISTINCT owner) FROM runs`); owners != "4" {
		t.Errorf("agents were run by %s gated, want two and two that were started again", owners)
	}
}

// Many requests of several turns are held, join each other's questions and are answered in any way, while processes are
// killed at random points. No request is sent twice, without a receipt, or without a rule or an answer that allows it.
func TestEgress_KilledAtRandom_UnderLoad(t *testing.T) {
	need.Verify(t)
	const rounds = 8
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := mathrand.New(mathrand.NewPCG(seed, 0))
	f, u := startEgress(t), newUpstream(t)
	chats, left := f.telegramChats("Alice", "Bob", "Carol")
	f.OK(f.Routd.Do(t.Context(), http.MethodDelete, "/v1/routes/1", nil, nil))
	for i, c := range chats { // their agents work at the same time
		folder := fmt.Sprintf("group%d", i)
		f.AddGroups(folder)
		f.AddRoute("chat_jid="+c.jid, folder)
	}
	points := map[string][]string{
		harness.Gated: {"put-ask.before", "put-ask.after", "answer-ask.before", "answer-ask.after", "expire-ask.before", "expire-ask.after",
			"end-turn.before", "end-turn.after", "recovering", "start-run.after"},
		egressProxy: {"put-receipt.before", "put-receipt.after", "end-receipt.before", "end-receipt.after"},
		"teled":     {"sending", "sent", "settle-outbound.before", "received", "put-message.before", "put-message.after", "pressed"},
	}
	pressed, written, killed := map[string]bool{}, 0, 0
	for round := range rounds {
		process := []string{harness.Gated, egressProxy, "teled"}[random.IntN(3)]
		daemon := strings.Replace(process, egressProxy, harness.Gated, 1)
		point := fmt.Sprintf("%s:%d", points[process][random.IntN(len(points[process]))], 1+random.IntN(6))
		ended := func() int { return strings.Count(f.Log(harness.Gated), "egress proxy ended") }
		before, died := ended(), false
		f.Kill(daemon)
		f.Restart(daemon, "FAILPOINT="+point)
		for i, c := range chats {
			var paths []string
			for _, kind := range "aabbcd" {
				paths = append(paths, fmt.Sprintf("mktemp -u %d/%d/%c/XXXXXXXXXX", round, i, kind))
			}
			f.OK(c.write(fmt.Sprintf("RUN (%s) | xargs -P 4 -I_ curl -sS -d body %s/_ || echo failed END", strings.Join(paths, "; "), u.URL)))
			written++
		}
		f.Until("round to end: "+process+" at "+point, func() bool {
			died = died || ended() > before
			for _, name := range []string{harness.Gated, "teled"} { // one may also reach its point of an earlier round
				if !f.Instance.Running(name) {
					died = true
					f.Restart(name)
				}
			}
			for _, line := range f.Query(`SELECT '' || a.id || ' ' || m.chat_jid FROM asks a JOIN messages m ON m.id = a.message_id WHERE a.state = 'open'`) {
				ask, jid, _ := strings.Cut(line, " ")
				if c := slices.IndexFunc(chats, func(c userChat) bool { return c.jid == jid }); !pressed[ask] {
					pressed[ask] = chats[c].press(ask, 1+random.IntN(no)) == nil
				}
			}
			return f.delivered() && f.Value(`SELECT count(*) FROM messages m JOIN turns t ON t.id = m.turn_id WHERE m.verb = 'message' AND m.direction = 'in'
				AND t.ended_at IS NOT NULL`) == strconv.Itoa(written) && f.Value(`SELECT (SELECT count(*) FROM asks WHERE state = 'open')
				+ (SELECT count(*) FROM egress_receipts WHERE ended_at = 0)`) == "0"
		})
		if died {
			killed++
		}
	}
	copies := left()
	receipts, err := egressrows.ListReceipts(t.Context(), f.Store.Reader, egressrows.Filter{Limit: 1 << 20})
	f.OK(err)
	states, arrived := map[egress.State]int{}, 0
	for _, r := range receipts {
		states[r.State]++
		n := strings.Count(u.requests(), "POST "+r.Path+" ")
		arrived += n
		var ask msg.Ask
		if a, err := f.Store.Ask(t.Context(), r.AskID); err == nil && a != nil {
			ask = *a
		}
		own := strings.HasSuffix(ask.AskID, fmt.Sprintf(":%d", r.ID))
		allowed := r.RuleID != 0 || ask.Option == "Once" && own || ask.Option == "For this turn" || ask.Option == msg.EgressAlways
		if n > 1 || n == 1 && (r.State == egress.Refused || !allowed) || n == 0 && r.State == egress.Sent {
			t.Errorf("arrived %d times: %s, question %s answered with %q", n, r, ask.AskID, ask.Option)
		}
	}
	if all := len(strings.Fields(u.requests())) / 3; all != arrived {
		t.Errorf("%d requests arrived, %d have receipts", all, arrived)
	}
	if bad := f.Query(`SELECT a.id, a.state, m.out_state FROM asks a JOIN messages m ON m.id = a.message_id WHERE m.out_state <> 'cancelled' AND NOT EXISTS
		(SELECT 1 FROM messages e WHERE e.derived_from = m.id AND (e.content LIKE '%answered by%' OR e.content LIKE '%Not sent: %'))`); len(bad) > 0 {
		t.Errorf("questions that do not say how they ended: %q", bad)
	}
	t.Logf("%d of %d rounds had a kill, receipts %v, %d copies of questions", killed, rounds, states, len(copies))
	if killed < rounds/3 || states[egress.Sent] == 0 || states[egress.Refused] == 0 {
		t.Error("too little has happened")
	}
}
