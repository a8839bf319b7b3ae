package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/rows"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// fakeRoutd knows the windows of the chat, and that no route leads from the other one.
type fakeRoutd struct {
	windows map[string]string // place → group
	down    bool
	calls   int
}

func newFakeRoutd(f *fixture) *fakeRoutd {
	r := &fakeRoutd{windows: map[string]string{"": folder}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		r.calls++
		var in routeapi.EngagementRequest
		switch err := json.NewDecoder(request.Body).Decode(&in); {
		case err != nil:
			httpx.Error(w, err)
		case r.down:
			httpx.Error(w, apierr.New(apierr.Unavailable, "the database is locked"))
		case *in.JID == foreignChat:
			httpx.Error(w, apierr.New(apierr.Forbidden, "no route leads from %s to group %s", *in.JID, in.Caller))
		case !strings.Contains(*in.JID, ":"):
			httpx.Error(w, apierr.New(apierr.BadRequest, "jid %q is not platform:room", *in.JID))
		case in.TTL != nil:
			delete(r.windows, *in.Topic)
			httpx.JSON(w, http.StatusOK, routeapi.Engagement{JID: *in.JID, Topic: *in.Topic})
		default:
			until := f.clock.UnixMilli() + 1000
			r.windows[*in.Topic] = in.Folder
			httpx.JSON(w, http.StatusOK, routeapi.Engagement{JID: *in.JID, Topic: *in.Topic, Folder: &in.Folder, Until: &until})
		}
	}))
	f.t.Cleanup(server.Close)
	f.services.Routd = httpx.NewClient("routd", server.URL, "")
	return r
}

func TestEngagement_OpenAndEnd(t *testing.T) {
	f := parallel(t)
	f.write(func(tx *store.Tx) error { return tx.PutThread(msg.Thread{ChatJID: chat, ID: "33"}) })
	want := fmt.Sprintf(`{"engaged":true,"engaged_until":%d,"folder":"acme"}`, f.clock.UnixMilli()+1000)
	for range 2 {
		if got := f.works("engage", `{"jid":"OWN_CHAT","topic":"33"}`); got != want {
			t.Errorf("engaged: %s, want %s", got, want)
		}
	}
	for range 2 {
		if got := f.works("disengage", `{"jid":"OWN_CHAT","topic":"33"}`); got != `{"engaged":false,"engaged_until":0,"folder":""}` {
			t.Errorf("disengaged: %s", got)
		}
	}
	if diff := cmp.Diff(map[string]string{"": folder}, f.routd.windows); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
}

// TestEngagement_TopicOfTheTurn_MeansItsPlace: in a thread, and in a chat pinned to a topic, the session's topic is no place.
func TestEngagement_TopicOfTheTurn_MeansItsPlace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ topic, thread, place, named, window string }{
		{"#deploy", "", "", "#deploy", ""},
		{"#deploy", "33", "33", "#deploy", "33"},
		{"#deploy", "33", "33", "33", "33"},
		{"#deploy", "", "#deploy", "#deploy", "#deploy"},
		{"#deploy", "33", "33", "", ""},
		{"", "", "", "#other", "#other"},
	} {
		f := newFixture(t)
		f.exec(`UPDATE turns SET topic = ?, thread_id = ?, place = ? WHERE id = ?`, tt.topic, tt.thread, tt.place, f.turn.ID)
		f.routd.windows = map[string]string{}
		f.works("engage", fmt.Sprintf(`{"jid":"OWN_CHAT","topic":%q}`, tt.named))
		if diff := cmp.Diff(map[string]string{tt.window: folder}, f.routd.windows); diff != "" {
			t.Errorf("%+v: windows (-want +got):\n%s", tt, diff)
		}
		f.works("disengage", fmt.Sprintf(`{"jid":"OWN_CHAT","topic":%q}`, tt.named))
		if len(f.routd.windows) != 0 {
			t.Errorf("%+v: left are %v", tt, f.routd.windows)
		}
		f.refused("disengage", `{"jid":"OWN_CHAT","topic":"#no name"}`, "is not valid: write # and a name")
	}
}

// answered stores a delivered answer of the fixture's turn, in a place.
func (f *fixture) answered(text, replyTo, platformID string) *msg.Message {
	f.t.Helper()
	m := &msg.Message{
		ChatJID: f.turn.ChatJID, Direction: msg.Out, Content: text, Source: msg.SourceAgent, PlatformID: platformID, ReplyToID: replyTo,
		TurnID: f.turn.ID, ThreadID: f.turn.ThreadID, Topic: f.turn.Place, Timestamp: 4, ReceivedAt: 5, OutState: msg.OutSent,
	}
	f.put(m)
	return m
}

// fork stores a fork of a group in the fixture's chat and thread.
func (f *fixture) fork(folder, topic string, set ...func(*msg.Fork)) {
	f.t.Helper()
	fork := &msg.Fork{ChatJID: f.turn.ChatJID, Topic: topic, Folder: folder, ThreadID: f.turn.ThreadID, MessageID: f.own.ID, CreatedAt: 1}
	for _, each := range set {
		each(fork)
	}
	f.write(func(tx *store.Tx) error { return rows.PutFork(tx, fork) })
}

// forkOf is the fork of a topic in the fixture's chat.
func (f *fixture) forkOf(topic string) *msg.Fork {
	f.t.Helper()
	fork, err := f.st.Fork(f.t.Context(), f.turn.ChatJID, topic)
	if err != nil || fork == nil {
		f.t.Fatalf("fork %s: %v, %v", topic, fork, err)
	}
	return fork
}

// in moves the fixture's run to a turn in another chat and place.
func (f *fixture) in(chatJID, thread, topic string, set ...func(*msg.Turn)) {
	f.t.Helper()
	m := &msg.Message{
		ChatJID: chatJID, Direction: msg.In, Content: "that is wrong", Sender: "x:7", ThreadID: thread, Topic: thread, ReplyToID: "wrong-" + chatJID + thread,
		Timestamp: 6, ReceivedAt: 7,
	}
	f.put(m)
	f.turn = &msg.Turn{
		Kind: msg.Conversation, Folder: folder, ChatJID: chatJID, Topic: topic, ThreadID: thread, Place: thread, TriggerMessageID: m.ID, CreatedAt: 1,
	}
	for _, each := range set {
		each(f.turn)
	}
	f.write(func(tx *store.Tx) error {
		if _, err := rows.PutTurn(tx, f.turn, 5); err != nil {
			return err
		}
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: folder, TurnID: f.turn.ID}, 3)
	})
	f.access = f.begin(msg.Run{Folder: folder, Topic: topic + "#run" + fmt.Sprint(m.ID), ChatJID: chatJID}, f.turn.ID)
}

func TestForkTopic_EachPlatform(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		chat, thread, topic, want, inThread string
		own                                 bool
	}{
		{"telegram:-5", "", "", "#fix", "", false},
		{"telegram:-5", "33", "33", "33#fix", "33", false},
		{"telegram:-5", "33", "#deploy", "#deploy#fix", "33", false},
		{"web:acme", "", "", "#fix", "", false},
		{"slack:C5", "", "", "#fix", "wrong-slack:C5", true},
		{"slack:C5", "1.2", "1.2", "1.2#fix", "1.2", false},
		{"discord:5", "", "", "#fix", "wrong-discord:5", true},
		{"discord:dm-5", "", "", "#fix", "", false},
		{"discord:5", "9", "9", "9#fix", "9", false},
	} {
		t.Run(tt.chat+" "+tt.topic, func(t *testing.T) {
			f := parallel(t)
			f.in(tt.chat, tt.thread, tt.topic)
			wrong := f.answered("Monday", "", "wrong-"+tt.chat+tt.thread)
			f.answered("something newer", "", "newer")
			before := f.ask(folder, "telegram:-6", "something else").TurnID
			var earlierRun int64
			f.write(func(tx *store.Tx) error {
				former := &msg.Fork{ChatJID: "telegram:-6", Topic: tt.want, Folder: folder, MessageID: wrong.ID, CreatedAt: 1}
				if err := errors.Join(rows.PutFork(tx, former), tx.EndFork(former.ChatJID, former.Topic, 2)); err != nil {
					return err
				}
				earlier := msg.Run{Folder: folder, Topic: tt.want, ChatJID: tt.chat, Runtime: "process", StartedAt: 1}
				if err := rows.StartRun(tx, &earlier, before); err != nil {
					return err
				}
				earlierRun = earlier.ID
				return rows.StoreSession(tx, &msg.Run{ID: earlier.ID, Folder: folder, Topic: tt.want}, 0, "of an earlier fork", 1)
			})
			want := fmt.Sprintf(`{"thread_id":%q,"topic":%q}`, tt.inThread, tt.want)
			if got := f.works("fork_topic", `{}`); got != want {
				t.Fatalf("fork: %s, want %s", got, want)
			}
			wantFork := &msg.Fork{
				ChatJID: tt.chat, Topic: tt.want, Folder: folder, ThreadID: tt.inThread, OwnThread: tt.own, MessageID: wrong.ID, CreatedAt: f.clock.UnixMilli(),
			}
			if diff := cmp.Diff(wantFork, f.forkOf(tt.want)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if session, err := factrows.Session(t.Context(), f.st.Reader, folder, tt.want); session != "" || err != nil {
				t.Errorf("the fork has the session %q: %v", session, err)
			}
			f.mu.Lock()
			if !slices.Equal(f.drained, []int64{earlierRun}) {
				t.Errorf("runs %d are drained, want %d, which was in that session", f.drained, earlierRun)
			}
			f.mu.Unlock()
			f.works("send_message", fmt.Sprintf(`{"text":"so when?","topic":%q}`, tt.want))
			place := tt.want
			if tt.own {
				place = tt.inThread
			}
			if sent := f.last(); sent.ThreadID != tt.inThread || sent.Topic != place {
				t.Errorf("a message to the fork: %+v", sent)
			}
			f.works("disengage", fmt.Sprintf(`{"jid":%q,"topic":%q}`, tt.chat, tt.want))
			if fork := f.forkOf(tt.want); fork.EndedAt != f.clock.UnixMilli() {
				t.Errorf("the fork has not ended: %+v", fork)
			}
			if f.routd.windows[""] != folder {
				t.Error("the parent's window is ended")
			}
		})
	}
}

func TestForkTopic_Refusals(t *testing.T) {
	f := parallel(t)
	f.works("fork_topic", `{"topic":"#correction","off_message_id":OWN_MESSAGE}`)
	for arguments, want := range map[string]string{
		`{"topic":"#correction","off_message_id":OWN_MESSAGE}`: "exists already",
		`{"topic":"correction","off_message_id":OWN_MESSAGE}`:  "such as #fix",
		`{"topic":"33#fix","off_message_id":OWN_MESSAGE}`:      "such as #fix",
		`{"topic":"#d7","off_message_id":OWN_MESSAGE}`:         "such as #fix",
		`{"topic":"#","off_message_id":OWN_MESSAGE}`:           "such as #fix",
		`{"off_message_id":FOREIGN_MESSAGE}`:                   "in reach",
	} {
		f.refused("fork_topic", arguments, want)
	}
	f.write(func(tx *store.Tx) error {
		return errors.Join(tx.EnsureChat(chat, 1), rows.PinTopic(tx, chat, "#deploy"))
	})
	f.refused("fork_topic", `{"off_message_id":OWN_MESSAGE}`, "pinned this chat to topic #deploy")
	f.in("slack:C5", "", "")
	f.refused("fork_topic", `{}`, "give off_message_id")
	f.refused("fork_topic", fmt.Sprintf(`{"off_message_id":%d}`, f.answered("Monday", "", "").ID), "is not delivered yet")
	f.refused("fork_topic", `{"off_message_id":OWN_MESSAGE}`, "not in this chat and thread")
}

// TestForkTopic_MessageOfAnotherTopic_IsRefused forks off messages of the same chat and thread.
func TestForkTopic_MessageOfAnotherTopic_IsRefused(t *testing.T) {
	f := parallel(t)
	const jid = "telegram:-5"
	f.in(jid, "", "#deploy")
	other := f.answered("Monday", "", "wrong-"+jid) // which the turn's message replies to
	fork := fmt.Sprintf(`{"off_message_id":%d}`, other.ID)
	f.in(jid, "", "")
	f.refused("fork_topic", fork, `is of another topic, "#deploy"`)
	f.refused("fork_topic", `{}`, "another topic")
	own := f.answered("Tuesday", "", "own")
	f.works("fork_topic", `{}`)
	if made := f.forkOf("#fix"); made.MessageID != own.ID {
		t.Errorf("without off_message_id: %+v, want a fork off message %d", made, own.ID)
	}
	f.in(jid, "", "#deploy")
	f.works("fork_topic", fork)
}

// The parent's place is where the fork was begun, whatever its topic.
func TestSendMessage_ForkToParent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ chat, thread, topic, parent, parentThread, parentPlace string }{
		{"discord:5", "9", "#fix", "", "", ""},                      // the fork's own thread
		{"discord:5", "9", "#deploy#fix", "#deploy", "", "#deploy"}, // likewise
		{"telegram:-5", "", "#fix", "", "", ""},
		{"telegram:-5", "33", "#deploy#fix", "#deploy", "33", "33"},
		{"telegram:-5", "33", "33#fix", "33", "33", "33"},
		{"web:acme", "", "#fix", "", "", ""},
	} {
		t.Run(tt.chat+" "+tt.topic, func(t *testing.T) {
			f := parallel(t)
			f.in(tt.chat, tt.thread, tt.topic)
			f.fork(folder, tt.topic, func(fork *msg.Fork) { fork.OwnThread = strings.HasPrefix(tt.chat, "discord") })
			f.works("send_message", fmt.Sprintf(`{"text":"it is Tuesday","topic":%q}`, tt.parent))
			if sent := f.outbound(); len(sent) != 1 || sent[0].ThreadID != tt.parentThread || sent[0].Topic != tt.parentPlace {
				t.Errorf("sent: %+v", sent)
			}
			if fork := f.forkOf(tt.topic); fork.EndedAt != 0 {
				t.Errorf("the fork: %+v", fork)
			}
		})
	}
}

// In a Slack thread, the answer to the parent ends the fork: later messages are for the parent.
func TestSendMessage_ForkInSlackThread_EndsIt(t *testing.T) {
	f := parallel(t)
	f.in("slack:C5", "1.2", "1.2#fix")
	f.fork(folder, "1.2#fix")
	ended := func() bool { return f.forkOf("1.2#fix").EndedAt != 0 }
	f.works("send_message", `{"text":"so when?"}`)
	f.works("send_message", `{"text":"so when?","topic":"1.2#fix"}`)
	if ended() {
		t.Fatal("a question of the fork has ended it")
	}
	f.works("send_message", `{"text":"it is Tuesday","topic":"1.2"}`)
	if !ended() {
		t.Error("the answer to the parent has not ended the fork")
	}
	f.works("disengage", `{"jid":"slack:C5","topic":"1.2#fix"}`)
	for _, m := range f.outbound() {
		if m.ThreadID != "1.2" {
			t.Errorf("sent to thread %q: %s", m.ThreadID, m.Content)
		}
	}
}

func TestForkTopic_Names_AreNotUsedAgain(t *testing.T) {
	f := parallel(t)
	f.in("telegram:-5", "", "")
	f.answered("Monday", "", "wrong")
	fork := func(want string) {
		t.Helper()
		if got := f.works("fork_topic", `{}`); got != fmt.Sprintf(`{"thread_id":"","topic":%q}`, want) {
			t.Errorf("fork: %s, want %s", got, want)
		}
	}
	fork("#fix")
	fork("#fix2")
	f.works("disengage", `{"jid":"telegram:-5","topic":"#fix"}`)
	f.refused("fork_topic", `{"topic":"#fix"}`, "was a fork that is over")
	f.refused("send_message", `{"text":"so when?","topic":"#fix"}`, "is over")
	fork("#fix3")
	f.works("fork_topic", `{"topic":"#dates"}`)
	fork("#fix4")
	// A group that users address by name in the same chat.
	f.fork("other", "#fix5")
	fork("#fix6")
	f.refused("fork_topic", `{"topic":"#fix5"}`, "exists already")
	// One that is open in another chat of the group, and one that users have begun.
	f.fork(folder, "#fix7", func(fork *msg.Fork) { fork.ChatJID = "telegram:-6" })
	fork("#fix8")
	f.in("telegram:-7", "", "#deploy")
	f.answered("Monday", "", "wrong-7")
	fork("#deploy#fix")
	f.refused("fork_topic", `{"topic":"#other"}`, "is not a fork of the current one: write one such as #deploy#fix, the current topic and # and a name of letters, digits, - and _")
	f.in("telegram:-7", "", "#deploy#fix")
	f.answered("Tuesday", "", "wrong-8")
	fork("#deploy#fix#fix")
}

// As long as forks are ended, there may be any number of them.
func TestForkTopic_OpenForks_AreLimited(t *testing.T) {
	f := parallel(t)
	f.in("slack:C5", "", "")
	newFork := func(n int) string {
		f.clock = f.clock.Add(time.Second)
		wrong := f.answered("Monday", "", fmt.Sprintf("wrong-%d", n))
		text, _ := f.call("fork_topic", fmt.Sprintf(`{"off_message_id":%d}`, wrong.ID))
		return text
	}
	for n := range maxForks {
		if got := newFork(n); strings.Contains(got, "disengage") {
			t.Fatalf("fork %d: %s", n, got)
		}
	}
	if got := newFork(100); !strings.HasPrefix(got, "this chat has 20 open forks: disengage those that are settled, of #fix, #fix2,") {
		t.Errorf("one too many: %s", got)
	}
	for n := range 2 * maxForks {
		f.write(func(tx *store.Tx) error { return tx.EndFork("slack:C5", msg.CorrectionTopic("", n+1), 5) })
		if got, want := newFork(200+n), fmt.Sprintf(`{"thread_id":"wrong-%d","topic":"#fix%d"}`, 200+n, maxForks+1+n); got != want {
			t.Fatalf("after %d have ended: %s, want %s", n+1, got, want)
		}
	}
}

func TestForkTopic_ThreadWithConversation_Refused(t *testing.T) {
	f := parallel(t)
	f.in("slack:C5", "", "")
	fork := fmt.Sprintf(`{"off_message_id":%d}`, f.answered("Monday", "", "1.5").ID)
	f.works("fork_topic", fork)
	f.refused("fork_topic", fork, "is topic #fix already: work there")
	f.works("disengage", `{"jid":"slack:C5","topic":"#fix"}`)
	if got := f.works("fork_topic", fork); got != `{"thread_id":"1.5","topic":"#fix2"}` {
		t.Errorf("again off the same message: %s", got)
	}
	talked, earlier := f.answered("Tuesday", "", "1.7"), f.ask(folder, "telegram:-6", "something else").TurnID
	run := msg.Run{Folder: folder, Topic: "1.7", ChatJID: "slack:C5", Runtime: "process", StartedAt: 1}
	f.write(func(tx *store.Tx) error {
		return errors.Join(rows.StartRun(tx, &run, earlier), rows.StoreSession(tx, &msg.Run{ID: run.ID, Folder: folder, Topic: "1.7"}, earlier, "of its thread", 1))
	})
	f.refused("fork_topic", fmt.Sprintf(`{"off_message_id":%d}`, talked.ID), "is topic 1.7 already")
}

// A turn with the answer to an escalation, or of an injected message, has a depth too.
func TestForkTopic_TurnOfAnotherGroup(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind   msg.TurnKind
		topic  string
		depth  int
		allows bool
	}{
		{msg.Conversation, "", 2, true}, {msg.Conversation, "#deploy", 1, true}, {msg.Delegated, "#d7", 1, false}, {msg.Conversation, "#d7", 2, false},
	} {
		f := newFixture(t)
		root := f.turn.ID
		f.in("telegram:-5", "", tt.topic, func(turn *msg.Turn) { turn.Kind, turn.Depth, turn.RootTurnID = tt.kind, tt.depth, root })
		f.answered("Monday", "", "wrong")
		text, isError := f.call("fork_topic", `{}`)
		if isError == tt.allows || isError && !strings.Contains(text, "you work for another group") {
			t.Errorf("%+v: %v %s", tt, isError, text)
		}
	}
}

// The fork of a group that no route of the chat leads to, such as one called by @name.
func TestDisengage_ForkWithoutWindow_Ends(t *testing.T) {
	f := parallel(t)
	there := func(fork *msg.Fork) { fork.ChatJID = foreignChat }
	f.fork("acme/eng", "#fix", there)
	f.fork("other", "#fix2", there)
	f.works("disengage", `{"jid":"FOREIGN_CHAT","topic":"#fix"}`)
	if fork, err := f.st.Fork(t.Context(), foreignChat, "#fix"); err != nil || fork.EndedAt == 0 {
		t.Errorf("%+v %v", fork, err)
	}
	f.refused("disengage", `{"jid":"FOREIGN_CHAT","topic":"#fix2"}`, "out of reach")
	f.routd.down = true
	f.refused("disengage", `{"jid":"FOREIGN_CHAT","topic":"#fix"}`, "try again later")
}
