package platforms

import (
	"cmp"
	"fmt"
	"strings"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
)

// front is one of a rig's platforms, with somebody in private.
type front struct {
	*rig
	chatsim.Platform
	about chatsim.Info
	dm    chatsim.Conversation
}

// connection waits for a state of the adapter's connection, and returns what is said of it.
func (f *front) connection(state string) (detail string) {
	f.t.Helper()
	f.until(f.about.Daemon+" is "+state, func() bool {
		return f.value(`SELECT connection FROM daemons WHERE name = ?`, f.about.Daemon) == state
	})
	return f.value(`SELECT detail FROM daemons WHERE name = ?`, f.about.Daemon)
}

// do has somebody do something.
func (f *front) do(a chatsim.Action) (id string) {
	f.t.Helper()
	id, err := f.Do(a)
	f.ok(err)
	return id
}

func (f *front) say(p chatsim.Conversation, text string) (id string) {
	f.t.Helper()
	return f.do(chatsim.Action{Conversation: p, Verb: msg.VerbMessage, Text: text})
}

// call says something that is sure of an answer.
func (f *front) call(p chatsim.Conversation, text string) (id string) {
	f.t.Helper()
	if !p.NeedsMention {
		return f.say(p, text)
	}
	return f.do(chatsim.Action{Conversation: p, Verb: msg.VerbMention, Text: text})
}

// running waits until an agent works for a chat.
func (f *front) running(p chatsim.Conversation) {
	f.t.Helper()
	f.until("it is being answered", func() bool {
		return f.value(`SELECT count(*) FROM turns WHERE state = 'running' AND chat_jid = ?`, p.Chat) == "1"
	})
}

// stored waits until a text is a row.
func (f *front) stored(text string) {
	f.t.Helper()
	f.until(fmt.Sprintf("%q is stored", text), func() bool { return f.rows(text) != "0" })
}

// rows counts the inbound rows with a text.
func (f *front) rows(text string) string {
	f.t.Helper()
	return f.value(`SELECT count(*) FROM messages WHERE direction = 'in' AND platform = ? AND content = ?`, f.about.Platform, text)
}

// arrived waits for a message of the bot's in which something stands.
func (f *front) arrived(text string) (found chatsim.Arrival) {
	f.t.Helper()
	f.until(fmt.Sprintf("%q arrives", text), func() bool {
		for _, a := range f.Arrivals() {
			if strings.Contains(a.Text, text) {
				found = a
				return true
			}
		}
		return false
	})
	return found
}

// answer waits for a message of the bot's that repeats what it was told.
func (f *front) answer(told string) chatsim.Arrival {
	f.t.Helper()
	return f.arrived(echo(told))
}

// answered waits for an answer in a place, read on a surface.
func (f *front) answered(told string, in chatsim.Conversation, surface string) chatsim.Arrival {
	f.t.Helper()
	a := f.answer(told)
	if a.Chat != in.Chat || a.Thread != in.Thread {
		f.t.Errorf("%q is answered in %s %q, not in %s %q", told, a.Chat, a.Thread, in.Chat, in.Thread)
	}
	want := fmt.Sprintf("place %s · surface %s ", cmp.Or(in.Thread, "-"), surface)
	if !strings.Contains(a.Text, want) {
		f.t.Errorf("%q is answered with %q, not with %q", told, a.Text, want)
	}
	return a
}

// echo is how the agent repeats what it was told.
func echo(told string) string { return "You said: " + told + "\n" }

// copies counts the messages in which the bot repeats what it was told.
func (f *front) copies(told string) (plain, marked int) {
	for _, a := range f.Arrivals() {
		switch {
		case !strings.Contains(a.Text, echo(told)):
		case strings.HasPrefix(a.Text, chatsim.MarkedCopy("")):
			marked++
		default:
			plain++
		}
	}
	return plain, marked
}

// onceEach waits until each text is answered, and fails unless it is stored once, and answered
// once, or, where nobody can look for what may have arrived, with copies that say so.
func (f *front) onceEach(told []string) {
	f.t.Helper()
	for _, text := range told {
		f.answer(text)
	}
	f.settle()
	for _, text := range told {
		if plain, marked := f.copies(text); plain > 1 || f.about.FindsMessages && marked > 0 {
			f.t.Errorf("%q is answered %d times, and %d times with a mark", text, plain, marked)
		}
		if n := f.rows(text); n != "1" {
			f.t.Errorf("%q is stored %s times", text, n)
		}
	}
}

// inOrder fails unless what the bot says in a place to texts that end in ascending numbers is in
// their order, but for copies.
func (f *front) inOrder(in chatsim.Conversation, prefix string) {
	f.t.Helper()
	last := -1
	for _, a := range f.Arrivals() {
		if a.Chat != in.Chat || a.Thread != in.Thread || strings.HasPrefix(a.Text, chatsim.MarkedCopy("")) {
			continue
		}
		for line := range strings.Lines(a.Text) {
			var n int
			if _, err := fmt.Sscanf(line, "You said: "+prefix+"%d", &n); err != nil {
				continue
			}
			if n < last {
				f.t.Errorf("%q is answered after %d", line, last)
			}
			last = n
		}
	}
}
