package scenarios

import (
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

func TestWebChat_Topics_RunInParallel(t *testing.T) {
	f := start(t, harness.Options{})
	row := func(topic, text string) int64 {
		return f.Put(msg.Message{ChatJID: "web:main", Topic: topic, Content: text})[0]
	}
	slow := row("#a", "slow 600 a")
	f.WaitRunning(slow)
	quick := row("#b", "b")
	f.Answer(quick)
	later := row("#a", "later")
	f.WaitDecided(later)
	if state := f.Turn(slow).State; state != msg.TurnRunning {
		t.Errorf("#a is %s", state)
	}
	if out := f.Outbound("web:main"); len(out) != 1 || out[0].Topic != "#b" {
		t.Errorf("answers: %+v", out)
	}
	f.WantReply(row("#a", "/stop"), "stopped")
}

func TestSession_SharedByTwoChats_TurnsRunInSequence(t *testing.T) {
	f := start(t, harness.Options{})
	f.WaitRunning(f.Say("telegram:5", "until go one"))
	f.Say("web:main", "slow 1 two")
	f.Say("telegram:5", "three")
	f.Say("web:main", "four")
	f.LetGo("main", "go")
	f.WantEchoes("telegram:5", "until go one", "three")
	f.WantEchoes("web:main", "slow 1 two", "four")
	if sessions := f.Query(`SELECT DISTINCT session_id FROM session_log WHERE folder = 'main' AND session_id <> ''`); len(sessions) != 1 {
		t.Errorf("sessions: %q", sessions)
	}
}
