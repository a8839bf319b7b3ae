package platforms

import (
	"cmp"
	"fmt"
	"strings"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
)

// fixture is an instance seen from one of its platforms.
type fixture struct {
	*instance
	chatsim.Platform
	info chatsim.Info
	dm   chatsim.Conversation // the private chat of a user
}

// waitConnection waits for a state of the adapter's connection and returns its detail.
func (f *fixture) waitConnection(state string) (detail string) {
	f.T.Helper()
	f.Until(f.info.Daemon+" to be "+state, func() bool {
		return f.Value(`SELECT connection FROM daemons WHERE name = ?`, f.info.Daemon) == state
	})
	return f.Value(`SELECT detail FROM daemons WHERE name = ?`, f.info.Daemon)
}

// do performs an action of a user.
func (f *fixture) do(a chatsim.Action) (id string) {
	f.T.Helper()
	id, err := f.Do(a)
	f.OK(err)
	return id
}

func (f *fixture) say(c chatsim.Conversation, text string) (id string) {
	f.T.Helper()
	return f.do(chatsim.Action{Conversation: c, Verb: msg.VerbMessage, Text: text})
}

// ask writes a message that is certain to be answered.
func (f *fixture) ask(c chatsim.Conversation, text string) (id string) {
	f.T.Helper()
	if !c.NeedsMention {
		return f.say(c, text)
	}
	return f.do(chatsim.Action{Conversation: c, Verb: msg.VerbMention, Text: text})
}

// waitRunning waits until a turn of a chat runs.
func (f *fixture) waitRunning(c chatsim.Conversation) {
	f.T.Helper()
	f.Until("a turn of "+c.Chat+" to run", func() bool {
		return f.Value(`SELECT count(*) FROM turns WHERE state = 'running' AND chat_jid = ?`, c.Chat) == "1"
	})
}

// waitStored waits until there is an inbound row with a text.
func (f *fixture) waitStored(text string) {
	f.T.Helper()
	f.Until(fmt.Sprintf("%q to be stored", text), func() bool { return f.rowCount(text) != "0" })
}

// rowCount counts the inbound rows with a text.
func (f *fixture) rowCount(text string) string {
	f.T.Helper()
	return f.Value(`SELECT count(*) FROM messages WHERE direction = 'in' AND platform = ? AND content = ?`, f.info.Platform, text)
}

// waitArrival waits for a message of the bot that contains a text.
func (f *fixture) waitArrival(text string) (found chatsim.Arrival) {
	f.T.Helper()
	f.Until(fmt.Sprintf("%q to arrive", text), func() bool {
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

// waitAnswer waits for a message of the bot that echoes a text.
func (f *fixture) waitAnswer(text string) chatsim.Arrival {
	f.T.Helper()
	return f.waitArrival(echo(text))
}

// wantAnswer waits for the answer to a text and fails the test unless it is in that conversation and
// the agent was given that surface.
func (f *fixture) wantAnswer(text string, in chatsim.Conversation, surface string) chatsim.Arrival {
	f.T.Helper()
	a := f.waitAnswer(text)
	if a.Chat != in.Chat || a.Thread != in.Thread {
		f.T.Errorf("%q is answered in %s %q, want %s %q", text, a.Chat, a.Thread, in.Chat, in.Thread)
	}
	want := fmt.Sprintf("place %s · surface %s ", cmp.Or(in.Thread, "-"), surface)
	if !strings.Contains(a.Text, want) {
		f.T.Errorf("%q is answered with %q, want %q", text, a.Text, want)
	}
	return a
}

// echo is how the agent echoes a text.
func echo(text string) string { return "You said: " + text + "\n" }

// copies counts the messages of the bot that echo a text.
func (f *fixture) copies(text string) (plain, marked int) {
	for _, a := range f.Arrivals() {
		switch {
		case !strings.Contains(a.Text, echo(text)):
		case strings.HasPrefix(a.Text, chatsim.MarkedCopy("")):
			marked++
		default:
			plain++
		}
	}
	return plain, marked
}

// wantOneAnswerEach waits until each text is answered and fails the test unless it is stored once and
// answered once. Where the adapter cannot look up messages there may also be marked copies.
func (f *fixture) wantOneAnswerEach(texts []string) {
	f.T.Helper()
	for _, text := range texts {
		f.waitAnswer(text)
	}
	f.WaitIdle()
	for _, text := range texts {
		if plain, marked := f.copies(text); plain > 1 || f.info.FindsMessages && marked > 0 {
			f.T.Errorf("%q has %d answers and %d marked copies", text, plain, marked)
		}
		if n := f.rowCount(text); n != "1" {
			f.T.Errorf("%q is stored %s times, want once", text, n)
		}
	}
}

// wantOrder fails the test unless the answers in a conversation to texts that end in ascending
// numbers arrived in their order, apart from marked copies.
func (f *fixture) wantOrder(in chatsim.Conversation, prefix string) {
	f.T.Helper()
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
				f.T.Errorf("%q is answered after %d", line, last)
			}
			last = n
		}
	}
}
