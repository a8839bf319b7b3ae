package scenarios

import (
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// A voice note is deleted while its command hangs, and gated is killed on either side of deciding that: the message
// beside it is answered at once.
func TestTakenBack_VoiceNote_GatedKilled_OtherMessageIsAnswered(t *testing.T) {
	f := start(t, harness.Options{})
	f.Exec(`UPDATE registered_groups SET config = '{"transcribe":"sleep 1000; cat {file}"}' WHERE folder = 'main'`)
	for _, point := range []fp.Point{fp.Decide.Before(), fp.Decide.After()} {
		id := voiceNote(f, "listen")
		f.Exec(`UPDATE messages SET platform_id = 'v` + string(point) + `' WHERE id = (SELECT max(id) FROM messages WHERE direction = 'in')`)
		beside := f.Put(msg.Message{ChatJID: "telegram:5", Content: "beside it"})[0]
		f.WaitDecided(beside)
		f.Until("the command to begin", func() bool { return f.Value(`SELECT count(*) FROM transcripts WHERE until > 0`) == "1" })
		killGatedAt(f, point, func() { f.Put(deletion("telegram:5", "v"+string(point))) })
		if got := f.Answer(beside); strings.Contains(got, "listen") || !strings.Contains(got, "beside it") {
			t.Errorf("killed at %s, the agent said %q", point, got)
		}
		if m := f.Row(id); m.Reason != msg.ReasonDeleted || m.TurnID != 0 {
			t.Errorf("killed at %s, the voice note is %+v", point, m)
		}
	}
	if n := f.Value(`SELECT count(*) FROM transcripts`); n != "0" {
		t.Errorf("%s transcripts of deleted messages", n)
	}
}
