package platforms

import (
	"slices"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	fp "arizuko/pkg/failpoint"
)

// undoable makes the agent answer in a thread, and returns the answer, which has the button.
func (f *fixture) undoable(text string) (in chatsim.Conversation, message string) {
	f.T.Helper()
	in = f.NewThread("plans")
	f.ask(in, text)
	message = f.waitAnswer(text).ID
	f.Until("the button", func() bool { return slices.Equal(f.labels(in, message), []string{"Undo"}) })
	f.WaitIdle()
	return in, message
}

func (f *fixture) labels(in chatsim.Conversation, message string) []string {
	labels, _ := f.Buttons(in, message)
	return labels
}

// wantTakenBack waits until the turn is taken back by a press, and its answer is gone.
func (f *fixture) wantTakenBack(in chatsim.Conversation, presses string) {
	f.T.Helper()
	f.waitDelivered(in, "Taken back: turn 2") // the first one opened the chat
	f.Until("the answer to go", func() bool {
		return f.Value(`SELECT count(*) FROM messages WHERE kind = 'delete' AND out_state = 'sent'`) == "1"
	})
	f.WaitIdle()
	if got := f.presses(); got != presses {
		f.T.Errorf("presses: %s", got)
	}
}

func TestUndo_Pressed_TakesTheTurnBack(t *testing.T) {
	onEachPlatform(t, func(f *fixture) {
		in, message := f.undoable("hello")
		f.wantPressAnswer(in, f.press(in, message, "Undo", true), "Another user asked for this: only operators can take it back.")
		f.WaitIdle()
		f.wantPressAnswer(in, f.press(in, message, "Undo", false), "")
		f.wantTakenBack(in, "command command, command command")
	})
}

// The adapter is killed when it has stored the press.
func TestUndo_KilledAfterThePress_TakesItBackOnce(t *testing.T) {
	onEachPlatform(t, func(f *fixture) {
		in, message := f.undoable("hello")
		f.Kill(f.info.Daemon)
		f.Until("the connection to end", func() bool { return !f.Connected() })
		f.StartDaemon(f.info.Daemon, "FAILPOINT="+string(fp.Pressed))
		f.Until("the connection", f.Connected)
		f.press(in, message, "Undo", false)
		f.waitKilled(f.info.Daemon)
		f.Restart(f.info.Daemon)
		f.wantTakenBack(in, "command command")
	})
}
