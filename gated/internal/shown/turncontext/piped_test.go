package turncontext

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

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
