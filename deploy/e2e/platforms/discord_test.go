package platforms

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
)

// TestWhatWasSaidMeanwhileIsRead is about more than one page of what was said while discd was down,
// in a channel, a thread and in private.
func TestWhatWasSaidMeanwhileIsRead(t *testing.T) {
	t.Parallel()
	f := start(t, newDiscord())
	channel, thread := f.NewGroup("general"), f.NewThread("deploys")
	f.say(channel, "good morning")
	f.stored("good morning")
	f.down("discd")
	const most = 120 // above the hundred that Discord tells at once
	for n := range most {
		f.say(channel, fmt.Sprintf("heard %d", n))
	}
	f.call(thread, "anybody there?")
	f.say(f.dm, "hello?")
	f.up("discd")
	f.onceEach([]string{"anybody there?", "hello?"})
	f.until("all is heard", func() bool {
		return f.value(`SELECT count(*) FROM messages WHERE content LIKE 'heard %'`) == fmt.Sprint(most)
	})
	if n := f.value(`SELECT count(*) FROM messages a JOIN messages b ON a.id < b.id
		WHERE a.content LIKE 'heard %' AND b.content LIKE 'heard %' AND CAST(substr(a.content, 7) AS INTEGER) > CAST(substr(b.content, 7) AS INTEGER)`); n != "0" {
		t.Errorf("%s pairs are out of order", n)
	}
}

func TestACommandOfDiscords(t *testing.T) {
	t.Parallel()
	w := chatsim.NewDiscord(chatsim.Size{}, discordOptions())
	f := start(t, w)
	alice := w.User("Carol", "carol")
	general := w.Guild("Team", alice).Channel("general")
	f.until("the commands are on offer", func() bool { return len(w.Commands()) > 0 })
	command := general.Command(alice, "ping", "")
	f.until("it is answered at once", func() bool { return w.Answered(command) })
	f.until("it is carried out", func() bool {
		for _, m := range general.Messages() {
			if strings.Contains(m.Content, "pong") {
				return true
			}
		}
		return false
	})
}

// TestAConnectionThatSaysNothingAnyMore stays open, as behind a firewall that has forgotten it.
func TestAConnectionThatSaysNothingAnyMore(t *testing.T) {
	t.Parallel()
	w := chatsim.NewDiscord(chatsim.Size{}, discordOptions())
	f := start(t, w)
	w.FreezeConnections()
	f.say(f.dm, "anybody there?")
	f.onceEach([]string{"anybody there?"})
	if w.Gateway().Connections < 2 {
		t.Error("it was answered on the connection that says nothing")
	}
}
