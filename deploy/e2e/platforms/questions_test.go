package platforms

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// asked makes the agent ask a question in a thread, and waits for its buttons.
func (f *fixture) asked() (in chatsim.Conversation, message string) {
	f.T.Helper()
	in = f.NewThread("colours")
	f.ask(in, "ask_user red green")
	message = f.waitArrival("Which one?").ID
	f.waitDelivered(in, "%Which one?") // its id is stored
	if labels, text := f.Buttons(in, message); !slices.Equal(labels, []string{"green", "red"}) {
		f.T.Fatalf("%q has the buttons %q", text, labels)
	}
	return in, message
}

// press presses a button.
func (f *fixture) press(in chatsim.Conversation, message, label string, other bool) (press string) {
	f.T.Helper()
	press, err := f.Press(in, message, label, other)
	f.OK(err)
	return press
}

// wantPressAnswer waits until a press is answered, and compares the text that only its user reads.
func (f *fixture) wantPressAnswer(in chatsim.Conversation, press, want string) {
	f.T.Helper()
	f.Until("the answer to a press", func() bool { _, ok := f.PressAnswer(in, press); return ok })
	if got, _ := f.PressAnswer(in, press); got != want {
		f.T.Errorf("the user of the press reads %q, want %q", got, want)
	}
}

// wantNoButtons waits until a message has lost its buttons, and its text contains the answer.
func (f *fixture) wantNoButtons(in chatsim.Conversation, message string) {
	f.T.Helper()
	f.Until("the buttons to go", func() bool { labels, _ := f.Buttons(in, message); return len(labels) == 0 })
}

// waitDelivered waits until a row that begins with a text is delivered in a conversation, as a message or as the edit of a
// preview.
func (f *fixture) waitDelivered(in chatsim.Conversation, text string) {
	f.T.Helper()
	f.Until(fmt.Sprintf("%q to be delivered", text), func() bool {
		return f.Value(`SELECT count(*) FROM messages WHERE direction = 'out' AND out_state = 'sent' AND chat_jid = ? AND thread_id = ? AND content LIKE ?`,
			in.Chat, in.Thread, text+"%") == "1"
	})
}

// presses lists the rows of presses with their decisions.
func (f *fixture) presses() string {
	return f.Value(`SELECT group_concat(disposition || ' ' || reason, ', ') FROM (SELECT disposition, reason FROM messages WHERE verb = 'answer' ORDER BY id)`)
}

// The press of a user who may not answer changes nothing; the agent gets the asker's. Later ones are too late.
func TestQuestion_Press_AnswersItOnce(t *testing.T) {
	onEachPlatform(t, func(f *fixture) {
		in, message := f.asked()
		f.wantPressAnswer(in, f.press(in, message, "red", true), "Only Bob may answer this.")
		late := f.press(in, message, "green", false)
		f.wantPressAnswer(in, late, "")
		f.waitDelivered(in, "Answer: green (answered)")
		f.wantNoButtons(in, message)
		f.WaitIdle()
		if got := f.presses(); got != "dropped choice_denied, observed chosen" {
			f.T.Errorf("presses: %s", got)
		}
	})
}

// The adapter is killed before it has stored the id of a question's message. Telegram cannot be asked for it, so the
// question is sent again, and the first message is known only once one of its buttons is pressed.
func TestQuestion_AdapterKilledAfterItIsSent_CopyLosesItsButtons(t *testing.T) {
	t.Parallel()
	f := start(t, newTelegram())
	in := f.NewThread("colours")
	f.WaitIdle()
	f.Kill(f.info.Daemon)
	f.StartDaemon(f.info.Daemon, "FAILPOINT="+string(fp.Sent))
	f.ask(in, "ask_user red green")
	f.waitKilled(f.info.Daemon)
	f.Restart(f.info.Daemon)
	f.waitDelivered(in, "%Which one?")
	var copies []string
	for _, a := range f.Arrivals() {
		if strings.Contains(a.Text, "Which one?") {
			copies = append(copies, a.ID)
		}
	}
	if len(copies) != 2 {
		t.Fatalf("the question is there %d times", len(copies))
	}
	f.wantPressAnswer(in, f.press(in, copies[0], "red", false), "This question was sent again: answer it there.")
	f.wantPressAnswer(in, f.press(in, copies[1], "green", false), "")
	f.waitDelivered(in, "Answer: green (answered)")
	f.wantNoButtons(in, copies[1])
	f.wantPressAnswer(in, f.press(in, copies[0], "red", false), "This question is closed.")
	f.wantNoButtons(in, copies[0])
	if _, text := f.Buttons(in, copies[0]); !strings.Contains(text, "answered by") {
		t.Errorf("the copy says %q", text)
	}
	f.WaitIdle()
	if got := f.presses(); strings.Count(got, "observed chosen") != 1 {
		t.Errorf("presses: %s", got)
	}
}

// The adapter is killed when it has stored a press, and the platform has no reply yet. Telegram sends the press again, so
// that its user gets the reply then; Discord and Slack show their user that the app did not respond.
func TestQuestion_AdapterKilledAfterThePress_CountsOnce(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		in, message := f.asked()
		killed := func(label string, other bool, notice string) {
			f.T.Helper()
			f.Kill(f.info.Daemon)
			f.Until("the connection to end", func() bool { return !f.Connected() })
			f.StartDaemon(f.info.Daemon, "FAILPOINT="+string(fp.Pressed))
			f.Until("the connection", f.Connected)
			press := f.press(in, message, label, other)
			f.waitKilled(f.info.Daemon)
			f.Restart(f.info.Daemon)
			if f.info.Platform == "telegram" {
				f.wantPressAnswer(in, press, notice)
				// Else the next press is not the first that the adapter stores when it is started again.
				f.Until("the updates to be confirmed", f.AllAcknowledged)
			}
		}
		killed("red", true, "Only Bob may answer this.")
		killed("red", false, "")
		f.waitDelivered(in, "Answer: red (answered)")
		f.wantNoButtons(in, message)
		f.WaitIdle()
		if got := f.presses(); got != "dropped choice_denied, observed chosen" {
			f.T.Errorf("presses: %s", got)
		}
	})
}

// A platform that refuses the buttons shows the question with its numbers. The delivery notes it.
func TestQuestion_ButtonsRefused_NumberAnswersIt(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		f.SetGroup("main", `{"rate":0,"progress":"off"}`) // the next message is the question
		in := f.NewThread("colours")
		f.RefuseButtons()
		f.ask(in, "ask_user red green")
		message := f.waitArrival("Which one?").ID
		f.waitDelivered(in, "%Which one?")
		labels, text := f.Buttons(in, message)
		if len(labels) != 0 || !strings.Contains(text, "1. red\n2. green") {
			f.T.Errorf("%q has the buttons %q", text, labels)
		}
		if got := f.Value(`SELECT error FROM deliveries WHERE error LIKE 'sent without buttons: %'`); got == "" {
			f.T.Errorf("the delivery does not say that the buttons were refused")
		}
		f.answerByNumber(in, message)
		f.waitDelivered(in, "Answer: green (answered)")
		f.WaitIdle()
		if _, text := f.Buttons(in, message); !strings.Contains(text, "green") || strings.Contains(text, "1. red") {
			f.T.Errorf("the question is changed to %q", text)
		}
	})
}

// answerByNumber answers a question with the second option, by a reply.
func (f *fixture) answerByNumber(in chatsim.Conversation, message string) {
	f.T.Helper()
	if f.info.Platform == "slack" { // which has no replies but threads
		f.say(in, "2")
		return
	}
	f.do(chatsim.Action{Conversation: in, Verb: msg.VerbReply, Target: message, Text: "2"})
}

// The chat is taken away before the question arrives: no user will answer, so the agent does not wait for one.
func TestQuestion_ChatIsGone_AgentGoesOn(t *testing.T) {
	need.Verify(t)
	onEachPlatformWithTools(t, func(f *fixture) {
		var gone []chatsim.Removal
		for n, d := range f.Removals() {
			if d.LeavesChat {
				continue
			}
			gone = append(gone, d)
			removed := fmt.Sprint("removed", n)
			f.ask(d.Conversation, "wait "+removed+"\n"+`call ask_user {"question":"Which one?","options":["red","green"]}`)
			f.waitRunning(d.Conversation)
			d.Apply()
			f.LetGo("main", removed)
		}
		f.WaitIdle()
		for _, d := range gone {
			got := f.Value(`SELECT content FROM messages WHERE chat_jid = ? AND source = 'agent' AND content LIKE 'ask_user %'`, d.Conversation.Chat)
			if !strings.Contains(got, "could not be delivered") {
				f.T.Errorf("%s: the agent goes on with %q", d.Name, got)
			}
		}
	})
}
