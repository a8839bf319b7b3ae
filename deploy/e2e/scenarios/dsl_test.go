package scenarios

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/deploy/e2e/harness"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// scenario is a sequence of steps in its own instance, with the expected result of each.
type scenario struct {
	title string
	steps []step
}

// defaultRoutes let the group main answer direct messages, mentions and replies, and observe
// everything else.
var defaultRoutes = [][2]string{
	{"platform=slack room=D*", "main"},
	{"platform=telegram room=[0-9]*", "main"},
	{"platform=discord room=dm-*", "main"},
	{"verb=mention", "main"},
	{"verb=reply", "main"},
	{"", "main#observe"},
}

// step is something that happens in a scenario, at a minute since its beginning. Minutes are the
// times that messages and deliveries claim, so a scenario waits for none. An agent answers within
// the step.
type step interface{ run(*scenarioRun) }

// action is a step that is not a message.
type action func(*scenarioRun)

func (a action) run(r *scenarioRun) { a(r) }

// location is where a message is written.
type location struct{ chat, thread, topic string }

// inThread is a platform's thread in a chat. Adapters use its id as the topic, too.
func inThread(chat, thread string) location { return location{chat, thread, thread} }

// inChat is a chat outside of its threads.
func inChat(chat string) location { return location{chat: chat} }

// inTab is a topic of a web chat.
func inTab(chat, topic string) location { return location{chat: chat, topic: topic} }

// wantTurn is a turn as it should be.
type wantTurn struct {
	folder  string
	session string // the topic, which decides the session
	thread  string // "" outside of the platform's threads
	place   string // where the answer engages the group
	surface string // and its ceiling
}

// message is a message with its expected result.
type message struct {
	at             int
	where          location
	verb, id, text string

	reason        msg.Reason // of the row's disposition
	turn          *wantTurn  // nil: none
	turnEnds      msg.Reason // "" if it runs on beyond the step
	delivery      delivery
	waitsForRoutd bool // it is undecided until endOutage
}

// delivery is the result of delivering an answer.
type delivery int

const (
	delivered delivery = iota
	queued
)

// says is a message that does not address the bot. By default it starts no turn.
func says(at int, where location, text string) message {
	return message{at: at, where: where, verb: msg.VerbMessage, text: text}
}

// mentions is a message that addresses the bot. id is its platform id.
func mentions(at int, where location, id, text string) message {
	return message{at: at, where: where, verb: msg.VerbMention, id: id, text: text}
}

// decided expects a disposition for that reason, and no turn.
func (m message) decided(reason msg.Reason) message {
	m.reason = reason
	return m
}

// observed expects that the row is only observed.
func (m message) observed() message { return m.decided(msg.ReasonRouteObserve) }

// starts expects a turn that is answered within the step.
func (m message) starts(turn wantTurn, reason msg.Reason) message {
	m.reason, m.turn, m.turnEnds = reason, &turn, msg.ReasonAnswered
	return m
}

// runsOn expects that the turn runs until releaseAgents.
func (m message) runsOn() message { return m.endsAs("") }

// endsAs expects a turn that is not answered.
func (m message) endsAs(reason msg.Reason) message {
	m.turnEnds = reason
	return m
}

// answerIs sets the result of delivering the answer within the step.
func (m message) answerIs(d delivery) message {
	m.delivery = d
	return m
}

// afterOutage expects that the row is undecided until endOutage.
func (m message) afterOutage() message {
	m.waitsForRoutd = true
	return m
}

func (m message) run(r *scenarioRun) { inOneBatch(m).run(r) }

// inOneBatch writes several messages in one transaction.
func inOneBatch(all ...message) action {
	return func(r *scenarioRun) {
		r.T.Helper()
		rows := make([]msg.Message, len(all))
		for i, m := range all {
			rows[i] = msg.Message{
				ChatJID: m.where.chat, ThreadID: m.where.thread, Topic: m.where.topic, Verb: m.verb, PlatformID: m.id,
				Content: m.text, ReceivedAt: r.minute(m.at).UnixMilli(),
			}
		}
		for i, id := range r.Put(rows...) {
			if all[i].waitsForRoutd {
				r.waiting = append(r.waiting, written{all[i], id})
			} else {
				r.check(written{all[i], id})
			}
		}
	}
}

// written is a message that has its row.
type written struct {
	message
	id int64
}

// scenarioRun is one run of a scenario.
type scenarioRun struct {
	*harness.Fixture
	begun    time.Time
	waiting  []written
	sessions map[wantTurn]string // session ids by folder and topic
}

// waitingAgent is the demo agent, except that it answers "wait until released" only after releaseAgents.
const waitingAgent = `while IFS= read -r line; do
	case $line in *"wait until released"*) until [ -e released ]; do sleep 0.02; done ;; esac
	printf '%s\n' "$line"
done | exec %demo`

// runScenarios runs each scenario in its own instance. Agents end after their answers, so
// that all they remember comes from the session.
func runScenarios(t *testing.T, all []scenario) {
	t.Parallel()
	for _, sc := range all {
		t.Run(sc.title, func(t *testing.T) {
			t.Parallel()
			f := harness.Start(t, programs, harness.Options{Agent: waitingAgent, Env: []string{"TURN_ATTEMPTS=1", "AGENT_IDLE=0s"}})
			f.AddGroups("main", "main/eng", "other")
			for _, route := range defaultRoutes {
				f.AddRoute(route[0], route[1])
			}
			r := &scenarioRun{Fixture: f, begun: time.Now(), sessions: map[wantTurn]string{}}
			for i, step := range sc.steps {
				if step.run(r); t.Failed() {
					t.Fatalf("step %d failed", i+1)
				}
			}
		})
	}
}

func (r *scenarioRun) minute(n int) time.Time { return r.begun.Add(time.Duration(n) * time.Minute) }

// check fails the test unless a message has its expected result.
func (r *scenarioRun) check(w written) {
	r.T.Helper()
	m := r.WaitDecided(w.id)
	if m.Reason != w.reason {
		r.T.Errorf("%q is %s/%s, want %s", w.text, m.Disposition, m.Reason, w.reason)
	}
	if w.turn != nil && m.TurnID == 0 {
		derived, err := r.Store.DerivedFrom(r.T.Context(), w.id)
		if err != nil || len(derived) != 1 {
			r.T.Fatalf("derived from %q: %v, %v", w.text, derived, err)
		}
		m = derived[0]
	}
	if w.turn != nil {
		r.checkTurn(w, m)
	} else if m.TurnID != 0 {
		r.T.Errorf("%q has turn %d, want none", w.text, m.TurnID)
	}
}

func (r *scenarioRun) checkTurn(w written, m *msg.Message) {
	r.T.Helper()
	t := r.Turn(m.ID)
	got := wantTurn{t.Folder, t.Topic, t.ThreadID, t.Place, fmt.Sprintf("%s %d", t.Surface, t.Ceiling)}
	if diff := cmp.Diff(*w.turn, got, cmp.AllowUnexported(wantTurn{})); diff != "" {
		r.T.Errorf("turn of %q (-want +got):\n%s", w.text, diff)
	}
	if place := msg.Place(m.ThreadID, m.Topic); m.ThreadID != got.thread || place != got.place {
		r.T.Errorf("%q is in thread %q, place %q", w.text, m.ThreadID, place)
	}
	if w.turnEnds == "" {
		r.Until(fmt.Sprintf("an agent to get %q", w.text), func() bool { return r.Turn(m.ID).State != msg.TurnQueued })
		return
	}
	if t = r.WaitEnded(m.ID); t.Reason != w.turnEnds {
		r.T.Errorf("the turn of %q ended as %s, want %s: %s", w.text, t.Reason, w.turnEnds, t.Error)
	}
	r.checkReplies(t)
	r.checkSession(t)
	r.deliver(r.minute(w.at), w.where.chat, w.delivery)
}

// checkReplies fails the test unless all replies of a turn are where its answer belongs.
func (r *scenarioRun) checkReplies(t *msg.Turn) {
	r.T.Helper()
	replies, err := factrows.TurnReplies(r.T.Context(), r.Store.Reader, t.ID)
	r.OK(err)
	if silent := t.Reason == msg.ReasonSilent; silent != (len(replies) == 0) {
		r.T.Errorf("turn %d is %s and has %d replies", t.ID, t.Reason, len(replies))
	}
	for _, out := range replies {
		if out.ChatJID != t.ChatJID || out.ThreadID != t.ThreadID || out.Topic != t.Place || out.ReplyToID != t.ReplyTo {
			r.T.Errorf("turn %d answers in %s, thread %q, place %q, to %q", t.ID, out.ChatJID, out.ThreadID, out.Topic, out.ReplyToID)
		}
	}
}

// checkSession fails the test if a topic has another session than before. Only a failure ends a
// session.
func (r *scenarioRun) checkSession(t *msg.Turn) {
	r.T.Helper()
	key := wantTurn{folder: t.Folder, session: t.Topic}
	if t.State != msg.TurnDone {
		delete(r.sessions, key)
		return
	}
	now := r.Query(`SELECT session_id FROM sessions WHERE group_folder = ? AND topic = ?`, t.Folder, t.Topic)
	if len(now) != 1 || r.sessions[key] != "" && r.sessions[key] != now[0] {
		r.T.Errorf("%s in topic %q had the session %q and has %q", t.Folder, t.Topic, r.sessions[key], now)
		return
	}
	r.sessions[key] = now[0]
}

// deliver delivers the queued rows of a chat as its adapter would.
func (r *scenarioRun) deliver(at time.Time, chat string, d delivery) {
	r.T.Helper()
	if d == queued {
		return
	}
	platform, _ := msg.SplitJID(chat)
	rows, err := r.Adapter.Queued(r.T.Context(), platform)
	for _, row := range rows {
		if err = r.Adapter.Sent(r.T.Context(), row.ID, fmt.Sprintf("out-%d", row.ID), at); err != nil {
			break
		}
	}
	r.OK(err)
}

// deliver delivers all queued rows of a chat's platform.
func deliver(at int, where location) action {
	return func(r *scenarioRun) { r.deliver(r.minute(at), where.chat, delivered) }
}

// deliverAt is deliver with a time that the adapter claims.
func deliverAt(at time.Time, where location) action {
	return func(r *scenarioRun) { r.deliver(at, where.chat, delivered) }
}

// releaseAgents lets waiting agents answer, and delivers their answers.
func releaseAgents(at int, where location) action {
	return func(r *scenarioRun) {
		r.T.Helper()
		r.Until("the released agents to answer", func() bool {
			groups, err := filepath.Glob(filepath.Join(r.Data, "groups", "[a-z]*")) // that of an agent which starts may be missing still
			r.OK(err)
			for _, group := range groups {
				r.OK(os.WriteFile(filepath.Join(group, "released"), nil, 0o600))
			}
			return len(r.Query(`SELECT id FROM turns WHERE ended_at IS NULL`)) == 0
		})
		r.WaitIdle()
		r.deliver(r.minute(at), where.chat, delivered)
	}
}

// delegate delegates the turn of a message to another group.
func delegate(where location, id, to, text string) action {
	return func(r *scenarioRun) {
		r.T.Helper()
		origin := r.turnOf(where, id)
		row := msg.Message{ChatJID: "group:" + to, Sender: "agent:" + origin.Folder, IsBot: true, Content: text, Source: msg.SourceDelegate,
			ForwardedFrom: &msg.ReturnAddress{
				Kind: msg.Delegation, TurnID: origin.ID, RootTurnID: origin.ID, Depth: 1, Folder: origin.Folder, ChatJID: origin.ChatJID,
				Topic: origin.Topic, ThreadID: origin.ThreadID, Place: origin.Place, ReplyTo: origin.ReplyTo,
				Surface: origin.Surface, Ceiling: origin.Ceiling, Claims: origin.ClaimsEngagement,
			}}
		r.WantDecision(r.Put(row)[0], msg.Routed, msg.ReasonDelegated)
	}
}

// turnOf is the turn of a message with a platform id.
func (r *scenarioRun) turnOf(where location, id string) *msg.Turn {
	r.T.Helper()
	row, err := r.Store.MessageByPlatformID(r.T.Context(), where.chat, id)
	if err != nil || row == nil {
		r.T.Fatalf("message %s of %s: %v", id, where.chat, err)
	}
	return r.Turn(row.ID)
}

// engage opens an engagement window by routd's API; 0 seconds end it. It happens now, before the
// scenario's first minute is over.
func engage(where location, folder string, seconds int) action {
	return func(r *scenarioRun) {
		r.T.Helper()
		r.OK(r.Routd.Do(r.T.Context(), http.MethodPost, "/v1/engagement", map[string]any{
			"jid": where.chat, "topic": msg.Place(where.thread, where.topic), "folder": folder, "ttl_seconds": seconds,
		}, nil))
	}
}

// wantThread fails the test unless a thread's history has exactly these messages.
func wantThread(where location, texts ...string) action {
	return func(r *scenarioRun) {
		r.T.Helper()
		got := r.Query(`SELECT content FROM messages WHERE chat_jid = ? AND thread_id = ? AND direction = 'in' ORDER BY id`,
			where.chat, where.thread)
		if !slices.Equal(got, texts) {
			r.T.Errorf("thread %s has %q, want %q", where.thread, got, texts)
		}
	}
}

// killGated kills and restarts gated.
func killGated(r *scenarioRun) {
	r.Kill(harness.Gated)
	r.Restart(harness.Gated)
}

// beginOutage begins an outage of routd, after routd has read all deliveries: ageRows would not
// reach rows that routd writes later.
func beginOutage(begin func(*harness.Fixture)) action {
	return func(r *scenarioRun) {
		r.T.Helper()
		r.OK(r.Routd.Do(r.T.Context(), http.MethodGet, "/v1/engagement?jid=web:main", nil, nil))
		begin(r.Fixture)
	}
}

// endOutage ends an outage of routd and checks the messages that waited for it.
func endOutage(end func(*harness.Fixture)) action {
	return func(r *scenarioRun) {
		r.T.Helper()
		for _, w := range r.waiting {
			if m := r.Row(w.id); m.Disposition != "" {
				r.T.Errorf("%q is decided during the outage: %s/%s", w.text, m.Disposition, m.Reason)
			}
		}
		end(r.Fixture)
		for _, w := range r.waiting {
			r.check(w)
		}
		r.waiting = nil
	}
}

// waitOutageLogged waits until gated has logged the outage of routd, and no longer asks it.
func waitOutageLogged(r *scenarioRun) {
	r.T.Helper()
	r.Until("gated to log the outage", func() bool { return strings.Contains(r.Log(harness.Gated), "routd is not answering") })
}

// ageRows makes all rows three hours older: the clock cannot be set, but the rows can.
func ageRows(r *scenarioRun) {
	r.T.Helper()
	const age = 3 * time.Hour
	for _, query := range []string{
		`UPDATE messages SET timestamp = timestamp - ?1, received_at = received_at - ?1, decided_at = decided_at - ?1`,
		`UPDATE turns SET created_at = created_at - ?1, started_at = started_at - ?1, ended_at = ended_at - ?1`,
		`UPDATE deliveries SET updated_at = updated_at - ?1`,
		`UPDATE chat_reply_state SET engaged_at = engaged_at - ?1, engaged_until = engaged_until - ?1, ended_at = ended_at - ?1`,
	} {
		r.Exec(query, age.Milliseconds())
	}
	r.begun = r.begun.Add(-age)
}
