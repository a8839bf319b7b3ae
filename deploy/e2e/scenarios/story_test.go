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

	"arizuko/pkg/msg"
)

// story is a page of a manual: what happens in an instance, one thing after
// another, and what must come of each.
type story struct {
	title  string
	routes []route // nil: the usual ones
	steps  []step
}

type route struct{ match, target string }

// usual is the table of an instance where the group main answers in direct
// messages and to whoever calls it, and hears the rest.
var usual = []route{
	{"platform=slack room=D*", "main"},
	{"platform=telegram room=[0-9]*", "main"},
	{"platform=discord room=dm-*", "main"},
	{"verb=mention", "main"},
	{"verb=reply", "main"},
	{"", "main#observe"},
}

// step is something that happens in a story, at a minute since its beginning.
// Minutes are what people's messages and the deliveries of answers say of
// themselves, so a story need not wait for any. An agent works while the story
// tells nothing else, in no time.
type step interface{ happen(*stage) }

// event is whatever is not said in a chat.
type event func(*stage)

func (e event) happen(p *stage) { e(p) }

// spot is where something is said.
type spot struct{ chat, thread, topic string }

// in is a platform's thread in a chat. Adapters give its id as the topic, too.
func in(chat, thread string) spot { return spot{chat, thread, thread} }

// room is a chat outside of its threads.
func room(chat string) spot { return spot{chat: chat} }

// tab is a topic of a web chat.
func tab(chat, topic string) spot { return spot{chat: chat, topic: topic} }

// asked is who is asked something, and where the answer will be read.
type asked struct {
	folder  string
	session string // the topic, which decides the session
	thread  string // "" outside of the platform's threads
	place   string // where the group is engaged by the answer
	surface string // and its ceiling
}

// saying is something said, and what must come of it.
type saying struct {
	at             int
	spot           spot
	verb, id, text string
	from           string // the sender, "" for anyone

	because msg.Reason // what the row's disposition is for
	asks    *asked     // nil: nobody
	ends    msg.Reason // of the turn, "" if that goes on beyond the step
	fate    fate
	waits   bool // nobody judges it yet
}

// fate is how the delivery of an answer goes.
type fate int

const (
	arrives fate = iota
	isOnItsWay
	isRefused
)

// says has somebody write something that calls nobody. Unless told otherwise it
// is asked of nobody.
func says(at int, where spot, text string) saying {
	return saying{at: at, spot: where, verb: msg.VerbMessage, text: text}
}

// calls has somebody address the bot. id is what the platform calls the message.
func calls(at int, where spot, id, text string) saying {
	return saying{at: at, spot: where, verb: msg.VerbMention, id: id, text: text}
}

// by names the sender.
func (s saying) by(sender string) saying {
	s.from = sender
	return s
}

// becomes is for what no agent is asked.
func (s saying) becomes(reason msg.Reason) saying {
	s.because = reason
	return s
}

// isHeard is for what is only listened to.
func (s saying) isHeard() saying { return s.becomes(msg.ReasonRouteObserve) }

// asking is for what fires a turn, which is answered at once.
func (s saying) asking(who asked, because msg.Reason) saying {
	s.because, s.asks, s.ends = because, &who, msg.ReasonAnswered
	return s
}

// thinking leaves the turn with its agent, until that is released.
func (s saying) thinking() saying { return s.ending("") }

// ending is for a turn that is not answered.
func (s saying) ending(reason msg.Reason) saying {
	s.ends = reason
	return s
}

// answer is for an answer that does not arrive within the step.
func (s saying) answer(f fate) saying {
	s.fate = f
	return s
}

// later leaves the row undecided until routd returns.
func (s saying) later() saying {
	s.waits = true
	return s
}

func (s saying) happen(p *stage) { together(s).happen(p) }

// together has several things said so fast that they are read as one.
func together(all ...saying) event {
	return func(p *stage) {
		p.t.Helper()
		rows := make([]msg.Message, len(all))
		for i, s := range all {
			rows[i] = msg.Message{
				ChatJID: s.spot.chat, ThreadID: s.spot.thread, Topic: s.spot.topic, Verb: s.verb, PlatformID: s.id,
				Content: s.text, Sender: s.from, ReceivedAt: p.minute(s.at).UnixMilli(),
			}
		}
		for i, id := range p.Put(rows...) {
			if all[i].waits {
				p.waiting = append(p.waiting, said{all[i], id})
			} else {
				p.check(said{all[i], id})
			}
		}
	}
}

// said is a saying that has its row.
type said struct {
	saying
	id int64
}

// stage is where a story is played.
type stage struct {
	*Suite
	begun    time.Time
	waiting  []said
	sessions map[asked]string // of the folders and topics met
}

// waitingAgent is an agent that thinks about what says "wait for it" until it
// is released.
const waitingAgent = `while IFS= read -r line; do
	case $line in *"wait for it"*) until [ -e "$HOME/released" ]; do sleep 0.02; done ;; esac
	printf '%s\n' "$line"
done | exec %demo`

// play has the stories happen, each in an instance of its own. Its agents go when
// they have answered, so that whoever remembers does so by the session.
func play(t *testing.T, stories []story) {
	t.Parallel()
	for _, st := range stories {
		t.Run(st.title, func(t *testing.T) {
			t.Parallel()
			s := Start(t, Options{Agent: waitingAgent, Env: []string{"TURN_ATTEMPTS=1", "AGENT_IDLE=0s"}})
			s.Group("main", "main/eng", "other")
			table := st.routes
			if table == nil {
				table = usual
			}
			for _, r := range table {
				s.Route(r.match, r.target)
			}
			p := &stage{Suite: s, begun: time.Now(), sessions: map[asked]string{}}
			for i, step := range st.steps {
				if step.happen(p); t.Failed() {
					t.Fatalf("that was step %d", i+1)
				}
			}
		})
	}
}

func (p *stage) minute(n int) time.Time { return p.begun.Add(time.Duration(n) * time.Minute) }

// check fails unless what was said came to what it should.
func (p *stage) check(s said) {
	p.t.Helper()
	m := p.Decided(s.id)
	if m.Reason != s.because {
		p.t.Errorf("%q is %s/%s, not %s", s.text, m.Disposition, m.Reason, s.because)
	}
	if s.asks != nil && m.TurnID == 0 {
		derived, err := p.st.DerivedFrom(p.t.Context(), s.id)
		if err != nil || len(derived) != 1 {
			p.t.Fatalf("derived from %q: %v, %v", s.text, derived, err)
		}
		m = derived[0]
	}
	if s.asks != nil {
		p.checkTurn(s, m)
	} else if m.TurnID != 0 {
		p.t.Errorf("%q went to turn %d", s.text, m.TurnID)
	}
}

func (p *stage) checkTurn(s said, m *msg.Message) {
	p.t.Helper()
	t := p.Turn(m.ID)
	got := asked{t.Folder, t.Topic, t.ThreadID, t.Place, fmt.Sprintf("%s %d", t.Surface, t.Ceiling)}
	if diff := cmp.Diff(*s.asks, got, cmp.AllowUnexported(asked{})); diff != "" {
		p.t.Errorf("%q asks (-want +got):\n%s", s.text, diff)
	}
	if in := msg.Place(m.ThreadID, m.Topic); m.ThreadID != got.thread || in != got.place {
		p.t.Errorf("%q stands in thread %q, place %q", s.text, m.ThreadID, in)
	}
	if s.ends == "" {
		p.Until("an agent has "+s.text, func() bool { return p.Turn(m.ID).State != msg.TurnQueued })
		return
	}
	if t = p.Ended(m.ID); t.Reason != s.ends {
		p.t.Errorf("the turn of %q ended as %s, not %s: %s", s.text, t.Reason, s.ends, t.Error)
	}
	p.checkReplies(t)
	p.checkSession(t)
	p.deliver(p.minute(s.at), s.spot.chat, s.fate)
}

// checkReplies fails unless all that came of a turn is where its answer belongs.
func (p *stage) checkReplies(t *msg.Turn) {
	p.t.Helper()
	replies, err := p.st.TurnReplies(p.t.Context(), t.ID)
	if err != nil {
		p.t.Fatal(err)
	}
	if silent := t.Reason == msg.ReasonSilent; silent != (len(replies) == 0) {
		p.t.Errorf("turn %d is %s and said %d things", t.ID, t.Reason, len(replies))
	}
	for _, r := range replies {
		if r.ChatJID != t.ChatJID || r.ThreadID != t.ThreadID || r.Topic != t.Place || r.ReplyToID != t.ReplyTo {
			p.t.Errorf("turn %d answers in %s, thread %q, place %q, to %q", t.ID, r.ChatJID, r.ThreadID, r.Topic, r.ReplyToID)
		}
	}
}

// checkSession fails if a topic's session is not the one it had. Only failure
// ends one.
func (p *stage) checkSession(t *msg.Turn) {
	p.t.Helper()
	key := asked{folder: t.Folder, session: t.Topic}
	if t.State != msg.TurnDone {
		delete(p.sessions, key)
		return
	}
	now := p.lines(`SELECT session_id FROM sessions WHERE group_folder = ? AND topic = ?`, t.Folder, t.Topic)
	if len(now) != 1 || p.sessions[key] != "" && p.sessions[key] != now[0] {
		p.t.Errorf("%s in topic %q had the session %q and has %q", t.Folder, t.Topic, p.sessions[key], now)
		return
	}
	p.sessions[key] = now[0]
}

// deliver has the adapter of a chat take what waits for it.
func (p *stage) deliver(at time.Time, chat string, f fate) {
	p.t.Helper()
	if f == isOnItsWay {
		return
	}
	platform, _ := msg.SplitJID(chat)
	queued, err := p.Adapter.Queued(p.t.Context(), platform)
	for _, o := range queued {
		if f == isRefused {
			err = p.Adapter.Failed(p.t.Context(), o.ID, "no such chat", at)
		} else {
			err = p.Adapter.Sent(p.t.Context(), o.ID, fmt.Sprintf("out-%d", o.ID), at)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// arrive has everything arrive that is on its way to a chat's platform.
func arrive(at int, where spot) event {
	return func(p *stage) { p.deliver(p.minute(at), where.chat, arrives) }
}

// arriveAt is arrive with whatever time the adapter makes of it.
func arriveAt(at time.Time, where spot) event {
	return func(p *stage) { p.deliver(at, where.chat, arrives) }
}

// released has the agents end their thinking, and what they say arrive.
func released(at int, where spot) event {
	return func(p *stage) {
		p.t.Helper()
		if err := os.WriteFile(filepath.Join(p.Data, "released"), nil, 0o600); err != nil {
			p.t.Fatal(err)
		}
		p.Settle()
		p.deliver(p.minute(at), where.chat, arrives)
	}
}

// delegated has the group that was asked something hand it to another, which
// stands for it in all that engagement is about.
func delegated(where spot, id, to, text string) event {
	return func(p *stage) {
		p.t.Helper()
		origin := p.turnOf(where, id)
		address := from(msg.Delegation, origin)
		address.Claims = origin.ClaimsEngagement
		p.Becomes(p.Put(handed(to, text, address))[0], msg.Routed, msg.ReasonDelegated)
	}
}

// turnOf is the turn that took a message, given by the platform's id.
func (p *stage) turnOf(where spot, id string) *msg.Turn {
	p.t.Helper()
	row, err := p.st.MessageByPlatformID(p.t.Context(), where.chat, id)
	if err != nil || row == nil {
		p.t.Fatalf("message %s of %s: %v", id, where.chat, err)
	}
	return p.Turn(row.ID)
}

// posted has the suite itself write something that answers nobody, and it
// arrives. about is the message whose turn it has to do with, "" for none.
func posted(at int, where spot, source, about string) event {
	return func(p *stage) {
		p.t.Helper()
		m := &msg.Message{
			ChatJID: where.chat, ThreadID: where.thread, Topic: where.topic, Direction: msg.Out, Source: source, Content: source,
			Timestamp: p.minute(at).UnixMilli(), ReceivedAt: p.minute(at).UnixMilli(), OutState: msg.OutQueued,
		}
		if about != "" {
			m.TurnID = p.turnOf(where, about).ID
		}
		if _, _, err := p.st.PutMessage(p.t.Context(), m); err != nil {
			p.t.Fatal(err)
		}
		p.deliver(p.minute(at), where.chat, arrives)
	}
}

// engaged has somebody open a window by word, or, for no seconds, end it. It
// happens now, before the story's first minute is over.
func engaged(where spot, folder string, seconds int) event {
	return func(p *stage) {
		p.t.Helper()
		p.post("/v1/engagement", map[string]any{
			"jid": where.chat, "topic": msg.Place(where.thread, where.topic), "folder": folder, "ttl_seconds": seconds,
		}, nil)
	}
}

// threadHolds fails unless a thread's history is made of these messages.
func threadHolds(where spot, texts ...string) event {
	return func(p *stage) {
		p.t.Helper()
		got := p.lines(`SELECT content FROM messages WHERE chat_jid = ? AND thread_id = ? AND direction = 'in' ORDER BY id`,
			where.chat, where.thread)
		if !slices.Equal(got, texts) {
			p.t.Errorf("the thread %s holds %q, not %q", where.thread, got, texts)
		}
	}
}

// gatedDies has gated start again, in the middle of whatever it does.
func gatedDies(p *stage) {
	p.Kill(Gated)
	p.Restart(Gated)
}

// gone begins an outage of routd, once that has read what was delivered so far:
// what it is about to write would know nothing of hours that pass.
func gone(begin func(*Suite)) event {
	return func(p *stage) {
		p.t.Helper()
		if err := p.routd.Do(p.t.Context(), http.MethodGet, "/v1/engagement?jid=web:main", nil, nil); err != nil {
			p.t.Fatal(err)
		}
		begin(p.Suite)
	}
}

// returned ends an outage of routd, and has what waited for that judged.
func returned(end func(*Suite)) event {
	return func(p *stage) {
		p.t.Helper()
		for _, s := range p.waiting {
			if m := p.Row(s.id); m.Disposition != "" {
				p.t.Errorf("%q did not wait: %s/%s", s.text, m.Disposition, m.Reason)
			}
		}
		end(p.Suite)
		for _, s := range p.waiting {
			p.check(s)
		}
		p.waiting = nil
	}
}

// noticed returns when gated has given up on routd, and asks nobody about the
// rows any more.
func noticed(p *stage) {
	p.t.Helper()
	p.Until("gated knows of the outage", func() bool { return strings.Contains(p.Log(Gated), "routd does not answer") })
}

// hoursPass makes everything three hours older: the clock cannot be turned, but
// the rows can.
func hoursPass(p *stage) {
	p.t.Helper()
	const hours = 3 * time.Hour
	for _, aged := range []string{
		`UPDATE messages SET timestamp = timestamp - ?1, received_at = received_at - ?1, decided_at = decided_at - ?1`,
		`UPDATE turns SET created_at = created_at - ?1, started_at = started_at - ?1, ended_at = ended_at - ?1`,
		`UPDATE deliveries SET updated_at = updated_at - ?1`,
		`UPDATE chat_reply_state SET engaged_at = engaged_at - ?1, engaged_until = engaged_until - ?1, ended_at = ended_at - ?1`,
	} {
		p.Exec(aged, hours.Milliseconds())
	}
	p.begun = p.begun.Add(-hours)
}
