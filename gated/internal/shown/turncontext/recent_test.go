package turncontext

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter/rows"
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

// surfaces are the places where a reply may be read, one chat for each. On the surface of
// an opening answer the first turn is in the chat and its answer opens a thread.
var surfaces = []struct {
	jid    string
	kind   msg.ChatKind
	thread string
	opens  bool
}{
	{"slack:C0ABC", msg.ChatChannel, "", true},
	{"slack:C0ABC", msg.ChatChannel, "1716.2", false},
	{"slack:D0ABC", msg.ChatDM, "", false},
	{"slack:D0ABC", msg.ChatDM, "1716.2", false},
	{"telegram:42", msg.ChatDM, "", false},
	{"telegram:-1001234", msg.ChatGroup, "", false},
	{"telegram:-1001234", msg.ChatGroup, "7", false},
	{"discord:dm-9", msg.ChatDM, "", false},
	{"discord:9", msg.ChatChannel, "", false},
	{"discord:9", msg.ChatChannel, "77", false},
	{"web:acme", msg.ChatWeb, "", false},
	{"matrix:room", msg.ChatGroup, "", false},
}

// TestRead_Surfaces has a golden file per surface: a run's first prompt, and three piped into
// it. None repeats what the run was shown.
func TestRead_Surfaces(t *testing.T) {
	t.Parallel()
	for _, s := range surfaces {
		name := msg.SurfaceOf(s.jid, s.kind, s.thread).Name
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, s.jid, s.kind, s.thread)
			sign := "🚫"
			if strings.HasPrefix(s.jid, "slack:") {
				sign = ":no_entry_sign:"
			}
			var b strings.Builder
			prompt := func(what string, turn *msg.Turn, events ...string) {
				b.WriteString("=== " + what + "\n" + f.prompt(turn, events...))
			}

			f.elsewhere("the build is red")
			f.say("Alice", "a", "", "who deploys?")
			f.say("Bob", "b", "a", "I can")
			f.say("Eve", "c", "", "lunch?")
			first := f.turn(s.opens, f.row("carol", "q", "b", "is it safe?"))
			prompt("first", first, "new_session")
			f.answer(first, "r", "It is.")

			if s.opens { // the conversation goes on in the thread
				f.thread = first.ThreadID
			}
			f.elsewhere("the build is green")
			f.say("Eve", "d", "r", "sure?")
			f.say("Dan", "e", "c", "at noon")
			hurry := f.row("Alice", "g", "", "hurry & see")
			hurry.Attachments = []msg.Attachment{{Path: "media/202611/1f-log.txt", Name: "log.txt", MIME: "text/plain", Size: 5}}
			second := f.turn(false, f.row("carol", "f", "d", "and now?"), hurry)
			prompt("piped: two messages, system message, a chain of which a part was shown", second, "new_day")
			f.answer(second, "s", "Still.")

			f.elsewhere("the build is blue")
			f.say("Frank", "h", "", "hello all")
			third := f.turn(false, f.row("carol", "i", "e", sign+" only this"))
			prompt("piped: in isolation, with a reply chain", third)
			f.answer(third, "t", "Only this.")

			prompt("piped: after that", f.turn(false, f.row("carol", "j", "", "thanks")))
			golden.Compare(t, filepath.Join("testdata", "piped_"+name+".txt"), b.String())
		})
	}
}

// TestRead_SkipSign_KeepsReplyChain writes the sign in a first prompt and in a piped one.
func TestRead_SkipSign_KeepsReplyChain(t *testing.T) {
	t.Parallel()
	const named, emoji = ":no_entry_sign:", "\U0001F6AB"
	tests := []struct {
		jid, sign string
		isolated  bool
	}{
		{"telegram:-1", emoji, true},
		{"telegram:-1", named, false},
		{"slack:C0ABC", named, true},
	}
	for _, tt := range tests {
		t.Run(tt.jid+" "+tt.sign, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tt.jid, msg.ChatGroup, "")
			check := func(what, text, chain, window, observed string) {
				t.Helper()
				_, after, _ := strings.Cut(text, "<reply_chain>")
				before, _, _ := strings.Cut(after, "</reply_chain>")
				if !strings.Contains(before, chain) {
					t.Errorf("%s: %q is not in the reply chain:\n%s", what, chain, text)
				}
				if got := strings.Contains(text, window) || strings.Contains(text, observed); got == tt.isolated {
					t.Errorf("%s: isolated %t, want %t:\n%s", what, !got, tt.isolated, text)
				}
			}
			f.elsewhere("red")
			f.say("Alice", "a", "", "who deploys?")
			f.say("Eve", "b", "", "lunch?")
			check("first", f.prompt(f.turn(false, f.row("Carol", "c", "a", "alone "+tt.sign))), "who deploys?", "lunch?", "red")
			f.elsewhere("green")
			f.say("Alice", "d", "", "and who tests?")
			f.say("Eve", "e", "", "noon?")
			check("piped", f.prompt(f.turn(false, f.row("Bob", "f", "", "too"), f.row("Carol", "g", "d", tt.sign))), "and who tests?", "noon?", "green")
		})
	}
}

// TestWindow_PrefixedMessageInIsolation_IsNotRepeated: the next prompt of the run does not show it as unanswered, in the window or
// in a reply chain.
func TestWindow_PrefixedMessageInIsolation_IsNotRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
	written := f.put(f.row("Bob", "w", "", "#plans 🚫 what?"), store.Decision{Disposition: msg.Prefix, Reason: msg.ReasonPrefixTopic})
	derived := f.row("Bob", "", "", "🚫 what?")
	derived.PlatformID, derived.DerivedFrom, derived.Source, derived.Topic = "", written.ID, msg.SourcePrefix, "#plans"
	isolated := f.turn(false, derived)
	f.prompt(isolated)
	f.answer(isolated, "r", "That.")
	f.say("Alice", "", "", "hello")
	text := f.prompt(f.turn(false, f.row("Bob", "", "w", "and now?")))
	if diff := cmp.Diff([]string{"hello"}, windowLines(text)); diff != "" || strings.Contains(text, "🚫") {
		t.Errorf("(-want +got):\n%s\n%s", diff, text)
	}
}

// TestRead_QuotedPosts_AreInTheReplyChain has prompts of a message that answers a post from before the bot
// was in the chat: that of a user, with a photo and a selected part, and one of the bot itself.
func TestRead_QuotedPosts_AreInTheReplyChain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(post, answer *msg.Message){
		"a_user": func(post, answer *msg.Message) {
			post.Attachments = []msg.Attachment{{Name: "plan.jpg", MIME: "image/jpeg", Size: 5, Ref: "r"}}
			post.Content, answer.Quote = "the <plan> & more", "<plan>"
		},
		"a_photo": func(post, _ *msg.Message) {
			post.Attachments = []msg.Attachment{{Name: "plan.jpg", MIME: "image/jpeg", Size: 5, Path: "media/202611/2-0-plan.jpg"}}
		},
		"the_bot": func(post, _ *msg.Message) { post.Sender, post.SenderName, post.IsBot = "telegram:1000", "ari", true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
			f.say("Ann", "p1", "", "shall we begin?")
			post, answer := f.row("Bob", "old", "older", "what was decided"), f.row("Ann", "new", "old", "@ari what about this?")
			change(post, answer)
			f.write(func(tx *store.Tx) error {
				_, err := rows.PutQuoted(tx, post)
				return err
			})
			golden.Compare(t, filepath.Join("testdata", "quoted_"+name+".txt"), f.prompt(f.turn(false, answer)))
		})
	}
}

func TestWindow_QuotedPost_IsALineOfItsThread(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
	post := f.row("Bob", "old", "", "what was decided")
	f.write(func(tx *store.Tx) error {
		_, err := rows.PutQuoted(tx, post)
		return err
	})
	f.say("Ann", "p1", "old", "was it?")
	golden.Compare(t, filepath.Join("testdata", "quoted_window.txt"), f.prompt(f.turn(false, f.row("Carol", "p2", "", "hi"))))
}

// The files of observed rows are not in the group's folder: a path would lead nowhere.
func TestRead_ObservedFiles_HaveNoPath(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
	m := f.row("Dan", "", "", "the log")
	m.ChatJID, m.Attachments = "discord:5", []msg.Attachment{{Name: "log.txt", MIME: "text/plain", Size: 5, Path: "media/202611/3-0-log.txt"}}
	f.put(m, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve})
	text := f.prompt(f.turn(false, f.row("Ann", "new", "", "hi")))
	if !strings.Contains(text, `name="log.txt"`) || strings.Contains(text, "media/") {
		t.Error(text)
	}
}
