package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// The button under a failure retries the turn once, whenever gated is killed, for its sender alone.
func TestRetry_ButtonPressed_OnceWheneverGatedIsKilled(t *testing.T) {
	f := start(t, harness.Options{Agent: "test -e fixed && exec %demo; exit 1", Env: []string{"TURN_ATTEMPTS=1", "AGENT_IDLE=0s"}})
	fixed := filepath.Join(f.Data, "groups", "main", "fixed")
	for i, point := range []fp.Point{fp.AnswerAsk.Before(), fp.AnswerAsk.After(), fp.Decide.Before(), fp.Decide.After()} {
		row := f.Put(msg.Message{ChatJID: adas, Sender: adas, Content: fmt.Sprintf("message %d", i)})[0]
		turn := f.WaitEnded(row)
		asks, err := f.Store.TurnAsks(t.Context(), turn.ID)
		f.OK(err)
		if turn.State != msg.TurnFailed || len(asks) != 1 {
			t.Fatalf("turn %+v with questions %+v", turn, asks)
		}
		shown := fmt.Sprintf("notice%d", i)
		f.OK(f.Adapter.Sent(t.Context(), asks[0].MessageID, shown, time.Time{}))
		content := msg.Press{Ask: asks[0].ID, Option: 1, Text: msg.RetryLabel}.JSON()
		press := func(sender string) int64 {
			return f.Put(msg.Message{ChatJID: adas, Sender: sender, Verb: msg.VerbAnswer, Content: content, TargetID: shown})[0]
		}
		f.WantDecision(press("telegram:8"), msg.Dropped, msg.ReasonChoiceDenied)
		f.OK(os.WriteFile(fixed, nil, 0o600))

		var pressed int64
		killGatedAt(f, point, func() { pressed = press(adas) })
		f.WantDecision(pressed, msg.Observed, msg.ReasonChosen)
		f.Until("the retry to be answered", func() bool { return f.Turn(row).State == msg.TurnDone })
		f.WantDecision(press(adas), msg.Dropped, msg.ReasonChoiceLate)
		answers := f.Value(`SELECT count(*) FROM messages WHERE turn_id = ? AND source = 'agent'`, turn.ID)
		retries := f.Value(`SELECT count(*) FROM audit WHERE what = 'retry turn'`)
		if answers != "1" || retries != fmt.Sprint(i+1) {
			t.Errorf("killed at %s: %s answers, %s retries", point, answers, retries)
		}
		f.OK(os.Remove(fixed))
		f.Until("the agent to end", func() bool { return f.Value(`SELECT count(*) FROM runs WHERE ended_at IS NULL`) == "0" })
	}
}
