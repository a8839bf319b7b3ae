package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// asker asks for the same permission in each turn, and says which answer it got.
const asker = `while read -r line; do t=$(printf %s "$line" | sed 's/.*"turnId":"\([0-9]*\)".*/\1/'); ` +
	`echo '---ARIZUKO_EVENT--- {"turnId":"'$t'","type":"ask","askId":"p","question":"Run Bash?","detail":"make deploy","options":["Allow once","Deny"],"payload_hash":"h","tool":"Bash","allow":"Allow once"}'; ` +
	`read -r a || exit 0; o=$(printf %s "$a" | sed 's/.*"option":"\([^"]*\)".*/\1/'); ` +
	`printf '%s\n' ---ARIZUKO_OUTPUT_START--- '{"status":"ok","turnId":"'$t'","result":"It says '"$o"'."}' ---ARIZUKO_OUTPUT_END---; done`

// A permission that repeats is always allowed by one press, whenever gated is killed, until the rule is revoked.
func TestAlwaysAllow_OneRuleWheneverGatedIsKilled_UntilItIsRevoked(t *testing.T) {
	const chat = "telegram:-5"
	f := start(t, harness.Options{Agent: asker})
	say := func(text string) int64 { return f.Put(msg.Message{ChatJID: chat, Sender: operator, Content: text})[0] }
	asks := func(row int64) (asks []*msg.Ask) {
		f.Until("the permission to be asked", func() bool {
			var err error
			asks, err = f.Store.TurnAsks(t.Context(), f.Turn(row).ID)
			f.OK(err)
			return len(asks) > 0
		})
		return asks
	}
	press := func(a *msg.Ask, sender string, option int) int64 {
		shown := fmt.Sprintf("ask%d", a.ID)
		f.OK(f.Adapter.Sent(t.Context(), a.MessageID, shown, time.Time{}))
		return f.Put(msg.Message{ChatJID: chat, Sender: sender, Verb: msg.VerbAnswer, Content: msg.Press{Ask: a.ID, Option: option}.JSON(), TargetID: shown})[0]
	}
	allowed := func(row int64) {
		t.Helper()
		if got := f.Answer(row); !strings.Contains(got, "It says Allow once.") {
			t.Errorf("the agent says %q", got)
		}
	}
	first := say("deploy")
	f.WantDecision(press(asks(first)[0], operator, 1), msg.Observed, msg.ReasonChosen)
	allowed(first)
	for i, point := range []fp.Point{fp.AnswerAsk.Before(), fp.AnswerAsk.After(), fp.Decide.After()} {
		row := say(fmt.Sprintf("deploy %d", i))
		a := asks(row)[0]
		if a.State != msg.AskOpen || len(a.Options) != 3 {
			t.Fatalf("asked %+v", a)
		}
		f.WantDecision(press(a, "telegram:8", 3), msg.Dropped, msg.ReasonChoiceDenied)
		var pressed int64
		killGatedAt(f, point, func() {
			pressed = f.Put(msg.Message{ChatJID: chat, Sender: operator, Verb: msg.VerbAnswer, Content: msg.Press{Ask: a.ID, Option: 3}.JSON(), TargetID: fmt.Sprintf("ask%d", a.ID)})[0]
		})
		f.WantDecision(pressed, msg.Observed, msg.ReasonChosen)
		allowed(row)
		for _, killedAt := range []fp.Point{fp.PutAsk.Before(), fp.PutAsk.After()} {
			var again int64
			killGatedAt(f, killedAt, func() { again = say("deploy again") })
			allowed(again)
			got := asks(again)
			if len(got) != 1 || !got[0].ByRule() || got[0].MessageID != 0 {
				t.Errorf("killed at %s: %+v", killedAt, got)
			}
		}
		rule := f.Value(`SELECT id FROM permission_rules WHERE used = 2 AND author = ?`, operator)
		if n := f.Value(`SELECT count(*) FROM permission_rules`); n != "1" || rule == "" {
			t.Fatalf("killed at %s: %s rules", point, n)
		}
		f.WantReply(say("/permissions"), "These requests of the group are always allowed:\n- **rule "+rule+"**, made by bob ("+operator+") on "+time.Now().Format(time.DateOnly)+
			", used 2 times, last on "+time.Now().Format(time.DateOnly)+": Run Bash? make deploy\nTo revoke one, write /permissions revoke with its number.")
		f.WantReply(f.Put(msg.Message{ChatJID: chat, Sender: "telegram:8", Content: "/permissions revoke " + rule})[0], "There is no rule "+rule+" that you can revoke here.")
		f.WantReply(say("/permissions revoke "+rule), "Rule "+rule+" is revoked: users are asked again.")
	}
}
