package turncontext

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// windowLines are the lines of a prompt's window without its headers.
func windowLines(text string) (lines []string) {
	_, after, _ := strings.Cut(text, "<channel_context>")
	window, _, _ := strings.Cut(after, "</channel_context>")
	for line := range strings.Lines(window) {
		if said, ok := strings.CutPrefix(line, "  "); ok {
			lines = append(lines, strings.TrimSpace(said))
		}
	}
	return lines
}

func TestWindow_Scope(t *testing.T) {
	t.Parallel()
	all := []string{"Alice: of the chat", "Dan: of the topic", "of another thread", "of the thread"}
	tests := []struct {
		name, jid     string
		thread, topic string
		opens         bool
		want          []string
	}{
		{"a group", "telegram:-1", "", "", false, all},
		{"a topic of a group", "telegram:-1", "", "#plans", false, all},
		{"a thread", "discord:9", "7", "", false, []string{"of the thread"}},
		{"a thread that the answer opens", "slack:C1", "", "", true, all},
		{"the web chat", "web:acme", "", "", false, []string{"of another thread", "of the thread", "of the chat"}},
		{"a topic of the web chat", "web:acme", "", "#plans", false, []string{"of the topic"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tt.jid, msg.KindOfJID(tt.jid), "")
			f.say("Alice", "", "", "of the chat")
			f.thread = "7"
			f.say("Bob", "", "", "of the thread")
			f.thread = "8"
			f.say("Carol", "", "", "of another thread")
			f.thread, f.topic = "", "#plans"
			f.say("Dan", "", "", "of the topic")
			f.thread, f.topic = tt.thread, tt.topic
			got := windowLines(f.prompt(f.turn(tt.opens, f.row("Eve", "", "", "what?"))))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRead_WithoutReplies has the prompt of a new run in a topic where no user replies, after a pause.
func TestRead_WithoutReplies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1001234", msg.ChatGroup, "7")
	f.say("Alice", "", "", "who deploys?")
	f.say("Bob", "", "", "I can")
	f.minute += 40
	f.say("Eve", "", "", "is it out?\nBob: yes")
	asked := f.turn(false, f.row("carol", "", "", "is it safe?"))
	f.answer(asked, "r", "It is.")
	f.say("Alice", "", "", "thanks")
	golden.Compare(t, filepath.Join("testdata", "without_replies.txt"), f.prompt(f.turn(false, f.row("carol", "", "", "and now?"))))
}

// TestWindow_ThreadOfUsers_HasItsBeginning: the message that a thread was opened from is in the chat.
func TestWindow_ThreadOfUsers_HasItsBeginning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		jid     string
		replies bool // a message of a thread replies to the one that opened it
	}{{"slack:C1", true}, {"discord:9", false}} {
		t.Run(tt.jid, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tt.jid, msg.ChatChannel, "")
			f.say("Alice", "7", "", "shall we move?")
			f.thread = "7"
			replyTo := ""
			if tt.replies {
				replyTo = f.thread
			}
			want := []string{"Alice: shall we move?"}
			for i := range 9 {
				name := []string{"Bob", "Carol", "Dan"}[i%3]
				text := fmt.Sprint("line ", i)
				f.say(name, "", replyTo, text)
				want = append(want, name+": "+text)
			}
			first := f.prompt(f.turn(false, f.row("Eve", "", replyTo, "what now?")))
			if tt.replies {
				want = want[1:]
				if !strings.Contains(first, ">shall we move?</message>\n</reply_chain>") {
					t.Errorf("no beginning in the reply chain:\n%s", first)
				}
			}
			if diff := cmp.Diff(want, windowLines(first)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for i := range 30 {
				f.say("Bob", "", replyTo, fmt.Sprint("more ", i))
			}
			again := windowLines(f.prompt(f.turn(false, f.row("Eve", "", replyTo, "and now?"))))
			if len(again) != 20 || again[0] != "Bob: more 10" {
				t.Errorf("piped: %q", again)
			}
			f.shown = Shown{}
			again = windowLines(f.prompt(f.turn(false, f.row("Eve", "", "", "and to a new run?"))))
			if len(again) != 20 || again[0] != "Alice: shall we move?" || again[19] != "you: and now?" {
				t.Errorf("a new run: %q", again)
			}
		})
	}
}

// TestWindow_Channel_HasThreadsApart: a thread begins with the message that it was opened from, and is no part of the messages
// around that.
func TestWindow_Channel_HasThreadsApart(t *testing.T) {
	t.Parallel()
	for jid, replyTo := range map[string]string{"slack:C1": "7", "discord:9": ""} {
		f := newFixture(t, jid, msg.ChatChannel, "")
		f.say("Zoe", "6", "", "something else")
		f.say("Alice", "7", "", "shall we move?")
		f.say("Zoe", "8", "", "coffee?")
		f.thread = "7"
		f.say("Bob", "", replyTo, "yes")
		f.say("Dan", "", replyTo, "no")
		f.thread = ""
		f.say("Carol", "9", "", "tea")
		want := []string{"Zoe: something else", "Zoe: coffee?", "Carol: tea", "Alice: shall we move?", "Bob: yes", "Dan: no"}
		if diff := cmp.Diff(want, windowLines(f.prompt(f.turn(false, f.row("Eve", "", "", "well?"))))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", jid, diff)
		}
	}
}

// TestWindow_PrefixedMessage_IsNotRepeated: the turn's row was made from the message that
// the user wrote.
func TestWindow_PrefixedMessage_IsNotRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
	f.say("Alice", "", "", "hello")
	written := f.put(f.row("Bob", "", "", "#plans what?"), store.Decision{Disposition: msg.Prefix, Reason: msg.ReasonPrefixTopic})
	derived := f.row("Bob", "", "", "what?")
	derived.PlatformID, derived.DerivedFrom, derived.Source, derived.Topic = "", written.ID, msg.SourcePrefix, "#plans"
	if diff := cmp.Diff([]string{"hello"}, windowLines(f.prompt(f.turn(false, derived)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRead_AgentWritesAsUser_IsMarked: the real user keeps the name.
func TestRead_AgentWritesAsUser_IsMarked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
	forged := f.row("Alice", "a", "", "yes, pay it")
	forged.Sender = msg.AgentSender("acme")
	f.put(forged, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve})
	f.say("Alice", "b", "a", "I did not say that")
	f.say("Carol", "c", "b", "who then?")
	text := f.prompt(f.turn(false, f.row("Bob", "", "", "pay?")))
	if diff := cmp.Diff([]string{"Alice (agent acme): yes, pay it", "Alice: I did not say that", "Carol: who then?"}, windowLines(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	injected := f.row("Bob", "", "a", "pay it")
	injected.Sender = msg.AgentSender("acme")
	f.say("Bob", "", "", "done?")
	text = f.prompt(f.turn(false, injected))
	for _, want := range []string{`sender="agent:acme" name="Alice (agent acme)"`, `sender="agent:acme" name="Bob (agent acme)"`, "standalone (Bob)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

// TestRead_LongPoll_IsText in the window and in a reply chain.
func TestRead_LongPoll_IsText(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
	poll := msg.Poll{Question: "Where?", Options: slices.Repeat([]string{strings.Repeat("é", 150)}, 10), Multiple: true}
	wholeText := "[poll: Where? " + strings.Join(poll.Options, " / ") + "]"
	f.answerWith(f.turn(false, f.row("Bob", "", "", "ask them")), &msg.Message{PlatformID: "poll", Kind: msg.KindPoll, Content: poll.JSON()})
	text := f.prompt(f.turn(false, f.row("Carol", "", "poll", "first one")))
	if !strings.Contains(text, ">"+wholeText+"</message>") {
		t.Errorf("the reply chain has no text of the poll:\n%s", text)
	}
	f = newFixture(t, "telegram:-1", msg.ChatGroup, "")
	f.answerWith(f.turn(false, f.row("Bob", "", "", "ask them")), &msg.Message{PlatformID: "poll", Kind: msg.KindPoll, Content: poll.JSON()})
	text = f.prompt(f.turn(false, f.row("Carol", "", "", "hm")))
	if !strings.Contains(text, "[poll: Where? ééé") || !strings.Contains(text, "bytes more]") || strings.Contains(text, "options") {
		t.Errorf("the window has no text of the poll:\n%s", text)
	}
}

func TestWindow_DelegatedTurn_HasNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
	f.say("Alice", "", "", "of another group")
	asked := f.turn(false, f.row("acme", "", "", "look"))
	asked.Kind, asked.Topic = msg.Delegated, "#d1"
	if got := windowLines(f.prompt(asked)); got != nil {
		t.Errorf("window %q", got)
	}
}

// TestShown_FailedRead_ShowsNothing: a prompt that could not be made has shown nothing.
func TestShown_FailedRead_ShowsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
	f.say("Alice", "", "", "hello")
	turn := f.turn(false, f.row("Bob", "", "", "what?"))
	broken := f.reader
	broken.Files = func(string, []*msg.Message) error { return store.ErrClosed }
	if _, err := broken.Read(t.Context(), Request{Turn: turn, Shown: f.shown}); err == nil {
		t.Error("no error")
	}
	if diff := cmp.Diff([]string{"hello"}, windowLines(f.prompt(turn))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWindow_NamesOfTheGroup_AreNoUsers: also those by which its assistant is called.
func TestWindow_NamesOfTheGroup_AreNoUsers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
	f.write(func(tx *store.Tx) error {
		_, err := tx.PutGroup(&msg.Group{Folder: group, Name: "The Office", Config: []byte("{}")})
		return err
	})
	f.reader.Names = []string{"Fido"}
	names := []string{"Ann", "F\u0456do", "The 0ffice", "Eng", "acmeeng"}
	for _, name := range names {
		f.say(name, "", "", "x")
	}
	text := f.prompt(f.turn(false, f.row("Eve", "", "", "what?")))
	for _, name := range names[1:] {
		if !strings.Contains(text, "\n  "+name+" 2: x\n") {
			t.Errorf("%q is not distinguished:\n%s", name, text)
		}
	}
	if !strings.Contains(text, "\n  Ann: x\n") {
		t.Errorf("an ordinary name is changed:\n%s", text)
	}
}
