package agents

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	question   = `!ask "askId":"q","question":"Which hunter2?","options":["one","two"]`
	permission = `!ask "askId":"p","question":"Run Bash?","detail":"rm -r x","options":["Allow once","Deny"],"payload_hash":"h1"`
)

func operators(cfg *Config) { cfg.Operators = map[string]bool{"telegram:77": true, "slack:U1": true} }

func askTimeout(d time.Duration) func(*Config) { return func(cfg *Config) { cfg.AskTimeout = d } }

// asks are the questions of a turn, once there are n.
func (r *harness) asks(t *msg.Turn, n int) (asks []*msg.Ask) {
	r.t.Helper()
	r.until("the questions are stored", func() bool {
		asks = must[[]*msg.Ask](r)(r.st.TurnAsks(r.t.Context(), t.ID))
		return len(asks) >= n
	})
	return asks
}

// choose does what the gateway does with an answer.
func (r *harness) choose(a *msg.Ask, option int) {
	r.t.Helper()
	now := r.cfg.Now().UnixMilli()
	r.write(func(tx *store.Tx) error { return rows.AnswerAsk(tx, a.ID, option, "telegram:77", "bob", now, now) })
	r.m.AskEnded()
}

// always is a permission that says what allows it.
const always = `!ask "askId":"p","question":"Run Bash?","detail":"rm -r x","options":["Allow once","Deny"],"payload_hash":"h1","tool":"Bash","allow":"Allow once"`

func TestAsk_AlwaysAllowed_AgentGetsItsOwnOptionWithoutAQuestion(t *testing.T) {
	t.Parallel()
	r := newHarness(t, operators)
	r.write(func(tx *store.Tx) error {
		_, err := tx.PutGroup(&msg.Group{Folder: "main", Config: []byte(`{}`)})
		return err
	})
	for i, options := range []int{2, 3} {
		turn := r.ask(always)
		a := r.asks(turn, 1)[0]
		if len(a.Options) != options {
			t.Fatalf("asked %+v", a)
		}
		r.choose(a, []int{1, 3}[i])
		if got := r.answered(turn)[0]; !strings.HasSuffix(got, `p: "Allow once" answered by "telegram:77" for "h1"`) {
			t.Errorf("the turn said %q", got)
		}
	}
	turn := r.ask(always)
	if got := r.answered(turn)[0]; !strings.HasSuffix(got, `p: "Allow once" answered by "telegram:77" for "h1"`) {
		t.Errorf("by the rule the turn said %q", got)
	}
	if a := r.asks(turn, 1)[0]; !a.ByRule() || a.MessageID != 0 {
		t.Errorf("stored %+v", a)
	}
}

func TestAsk_Answered_AgentGoesOn(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	turn := r.ask(question)
	a := r.asks(turn, 1)[0]
	if a.Question != "Which ***?" || a.State != msg.AskOpen || a.ExpiresAt-a.CreatedAt != 600_000 || !a.Who.Everyone {
		t.Errorf("stored %+v", a)
	}
	if p := r.progress(turn); p == nil || p.State != agentproto.StatusRequiresAction {
		t.Errorf("progress %+v", p)
	}
	r.choose(a, 2)
	if got := r.answered(turn)[0]; !strings.HasSuffix(got, `q: "two" answered by "telegram:77" for ""`) {
		t.Errorf("the turn said %q", got)
	}
}

func TestAsk_CannotBeAsked_IsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.write(func(tx *store.Tx) error {
		return tx.PutThread(msg.Thread{ChatJID: "discord:900", ID: "901", Kind: "forum_post"})
	})
	const forum = `q: "" refused by "" for "" the chat is a forum, and this turn is in none of its posts: no user may answer`
	if got := r.answered(r.ask(question, chat("discord:900")))[0]; got != forum {
		t.Errorf("in a forum, which shows no message outside of its posts, it said %s", got)
	}
	for ask, want := range map[string]string{
		`!ask "askId":"q","question":"Which?","options":["one"]`:                      `q: "" refused by "" for "" a question has 2 to 10 options, not 1`,
		`!ask "askId":"q","question":"Which?","options":["a","b"],"payload_hash":"h"`: `q: "" refused by "" for "h" no user may answer here: only operators may`,
		`!ask "turnId":"999","askId":"q","question":"Which?","options":["a","b"]`:     `q: "" refused by "" for "" it is of no open turn`,
	} {
		if got := r.answered(r.ask(ask, chat("telegram:-5")))[0]; got != want {
			t.Errorf("%s\nsaid %s\nwant %s", ask, got, want)
		}
	}
}

// Its agent does not wait ten minutes for an answer that no user can give. Both ways: the tool has its own test.
func TestAsk_NotDelivered_IsRefused(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	turn := r.ask(question)
	a := r.asks(turn, 1)[0]
	r.write(func(tx *store.Tx) error {
		return cmp.Or(tx.ClaimOutbound(a.MessageID, 1, 1), tx.SettleOutbound(a.MessageID, msg.OutFailed, ""))
	})
	if got := r.answered(turn)[0]; !strings.HasSuffix(got, `q: "" refused by "" for "" it could not be delivered, so no user has read it`) {
		t.Errorf("the turn said %q", got)
	}
}

func TestAsk_Waiting_UsesNoSlotAndNoTime(t *testing.T) {
	t.Parallel()
	r := newHarness(t, timeout(5*time.Second), askTimeout(8*time.Second), func(cfg *Config) { cfg.MaxAgents = 1 }, impatient)
	turn := r.ask(question)
	r.asks(turn, 1)
	r.answered(r.ask("hi", group("other"), chat("telegram:2"))) // while the first waits
	if got := r.answered(turn)[0]; !strings.HasSuffix(got, `q: "" expired by "" for ""`) {
		t.Errorf("the turn said %q", got)
	}
	if now := r.turn(turn.ID); now.Attempts != 0 {
		t.Errorf("the turn %+v", now)
	}
}

// TestAsk_Waiting_OtherTopicsGoOn: only turns of the same session wait with a run that waits for an answer.
func TestAsk_Waiting_OtherTopicsGoOn(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	first := r.ask(question)
	a := r.asks(first, 1)[0]
	shares := r.ask("shares", chat("telegram:-2"))
	other := r.ask("other", chat("telegram:-3"), func(t *msg.Turn) { t.Topic = "#other" })
	diff(t, "answer", r.answered(other), []string{"re: other"})
	if now := r.turn(shares.ID); now.State != msg.TurnQueued {
		t.Errorf("turn %+v", now)
	}
	r.choose(a, 1)
	r.await(first, msg.TurnDone)
	diff(t, "answer", r.answered(shares), []string{"re: shares"})
}

func TestAsk_Answered_WhileGatedIsDown_IsGivenToTheNextAttempt(t *testing.T) {
	t.Parallel()
	r := newHarness(t, operators, impatient)
	turn := r.ask(permission, chat("telegram:-5"))
	a := r.asks(turn, 1)[0]
	if !a.Who.May("telegram:77") || a.Who.May("slack:U1") || a.Who.May("telegram:1") {
		t.Errorf("who may answer: %+v", a.Who)
	}
	r.stop()
	r.choose(a, 1)
	r.start()
	if got := r.answered(turn)[0]; !strings.HasSuffix(got, `p: "Allow once" answered by "telegram:77" for "h1"`) {
		t.Errorf("the turn said %q", got)
	}
	if asks := r.asks(turn, 1); len(asks) != 1 {
		t.Errorf("%d questions", len(asks))
	}
}

func TestAsk_TurnIsCancelled_EndsIt(t *testing.T) {
	t.Parallel()
	r := newHarness(t, impatient)
	turn := r.ask(question)
	a := r.asks(turn, 1)[0]
	r.cancelChat(turn.ChatJID)
	r.await(turn, msg.TurnCancelled)
	if a = must[*msg.Ask](r)(r.st.Ask(t.Context(), a.ID)); a.State != msg.AskExpired {
		t.Errorf("the question is %s", a.State)
	}
	r.answered(r.ask("and now?")) // no slot is lost
}

func TestAsk_IdOfGatedsOwn_IsAnotherQuestion(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for _, id := range []string{"budget", "egress:0123:7"} {
		turn := r.ask(strings.Replace(question, `"q"`, `"`+id+`"`, 1))
		a := r.asks(turn, 1)[0]
		if a.AskID != "agent-"+id {
			t.Errorf("stored as %q", a.AskID)
		}
		r.choose(a, 1)
		if got := r.answered(turn)[0]; !strings.Contains(got, id+`: "one" answered`) {
			t.Errorf("the turn said %q", got)
		}
	}
}

func TestAsk_LongTexts_SayWhatIsNotShown(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	turn := r.ask(`!ask "askId":"q","question":"Run?` + strings.Repeat("y", 1000) + `","detail":"` + "\\u202e" + strings.Repeat("x", 9000) + `","options":["one","two"]`)
	a := r.asks(turn, 1)[0]
	want := "Run?" + strings.Repeat("y", 996) + " [4 more bytes, which are not shown]\n\\u202exxx"
	if !strings.HasPrefix(a.Question, want) || !strings.HasSuffix(a.Question, "\n[1006 more bytes, which are not shown]") {
		t.Errorf("shown:\n%s", a.Question)
	}
	r.choose(a, 1)
	r.answered(turn)
}

// Nothing can be allowed that is not shown.
func TestAsk_Permission_IsShownWholeOrRefused(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		"ls" + strings.Repeat(" ", 3000) + " && rm": "ls[3,001 blanks]&& rm", strings.Repeat("xy ", 2000): "", "\\u202ea\\ufe0f": `\u202ea\ufe0f`,
		strings.Repeat("x", 8001): "refused", "ls" + strings.Repeat(" ", 33000) + " && rm": "refused", "ls" + strings.Repeat(" ", 100_000) + " && rm": "refused",
	} {
		r := newHarness(t, operators)
		turn := r.ask(`!ask "askId":"q","question":"Run  it?","detail":"` + detail + `","options":["one","two"],"payload_hash":"h"`)
		if want == "refused" {
			if got := r.answered(turn); !strings.Contains(got[0], textTooLong) || !strings.Contains(got[0], `q: "" refused`) {
				t.Errorf("%.20q and %d bytes: the chat read %q", detail, len(detail), got)
			}
			continue
		}
		if a := r.asks(turn, 1)[0]; !strings.HasPrefix(a.Question, "Run[2 blanks]it?\n"+want) || want == "" && len(a.Question) < 6000 {
			t.Errorf("shown:\n%s", a.Question)
		}
	}
}

// A user whose role is limited to a tool may answer about the tool that the agent names.
func TestAsk_Tool_IsWhatALimitedApproverMayAllow(t *testing.T) {
	t.Parallel()
	r := newHarness(t, operators)
	r.configure("main", `{"roles":{"approve":[{"who":"telegram:8","tools":["Bash"]}]}}`)
	for tool, want := range map[string]bool{"Bash": true, "Write": false, "": false} {
		turn := r.ask(`!ask "askId":"q","question":"Run it?","options":["one","two"],"payload_hash":"h","tool":"` + tool + `"`)
		a := r.asks(turn, 1)[0]
		if a.Who.May("telegram:8") != want || !a.Who.May("telegram:77") {
			t.Errorf("%q may be allowed by %+v", tool, a.Who)
		}
		r.choose(a, 1)
		r.answered(turn)
	}
}

func TestWhoMay_ByChatAndConfiguration(t *testing.T) {
	t.Parallel()
	r := newHarness(t, operators)
	ops := msg.Who{Label: "operators", Senders: []string{"telegram:77"}}
	const limited = `{"roles":{"approve":[{"who":"telegram:8","hosts":["api.github.com"],"tools":["Bash"]}]}} ` // and a host
	for i, tt := range []struct {
		chat, config string
		permission   bool
		want         msg.Who
	}{
		{"telegram:-5", limited + "api.github.com", true, msg.Who{Label: "operators and the approvers of this group (ann, telegram:8 (api.github.com, Bash))", Senders: []string{"telegram:77", "telegram:8"}}},
		{"telegram:-5", limited + "example.com", true, ops},
		{"telegram:5", limited + "example.com", true, ops},
		{"telegram:5", `{}`, true, msg.Who{Everyone: true}},
		{"telegram:5", `{"approvers":"operators"}`, true, ops},
		{"telegram:5", `{"approvers":["telegram:8"]}`, true, msg.Who{Label: "operators and the approvers of this group (ann, telegram:8)", Senders: []string{"telegram:77", "telegram:8"}}},
		{"telegram:-5", `{}`, true, ops},
		{"telegram:-5", `{"approvers":"everyone"}`, true, msg.Who{Everyone: true}},
		{"telegram:-5", `{"approvers":"all"}`, true, ops},
		{"web:main", `{}`, true, msg.Who{Label: "operators", Senders: []string{"web:operator"}}},
		{"telegram:5", `{}`, false, msg.Who{Everyone: true}},
		{"telegram:-5", `{}`, false, msg.Who{Label: "bob", Senders: []string{"telegram:77"}}},
		{"web:main", `{}`, false, msg.Who{Everyone: true}},
		{"telegram:-5", "telegram:8", false, msg.Who{Label: "the user whose reminder this is", Senders: []string{"telegram:8"}}},
		{"telegram:-5", "discord:8", false, ops},
		{"telegram:-5", "telegram:8", true, ops},
	} {
		row, config, about := &msg.Message{Content: "x"}, tt.config, groupconfig.Subject{}
		if host, is := strings.CutPrefix(config, limited); is {
			config, about.Host = strings.TrimSpace(limited), host
			r.store(newTurn(chat("telegram:8")), &msg.Message{Content: "x", Sender: "telegram:8", SenderName: "ann"})
		}
		switch {
		case config != "" && config[0] != '{': // of a reminder's payer
			row, config = &msg.Message{ChatJID: "group:main", Sender: "reminder:1", SenderName: "reminder", IsBot: true, OnBehalfOf: config, Source: msg.SourceReminder}, `{}`
		case tt.chat == "web:main":
			row.Sender, row.SenderName = msg.WebOperator, "operator"
		}
		folder := fmt.Sprint("g", i)
		r.write(func(tx *store.Tx) error {
			_, err := tx.PutGroup(&msg.Group{Folder: folder, Config: []byte(config)})
			return err
		})
		turn := newTurn(chat(tt.chat), group(folder))
		r.store(turn, row)
		got, _, err := r.m.asks.whoMay(turn, tt.permission, about)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, tt.chat+" "+tt.config, got, tt.want)
	}
}

// A request of an agent is asked about only where a user can answer now.
func TestAsk_Request_NeedsAUserWhoIsThere(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	const approvers = `{"roles":{"approve":["telegram:8"]}}`
	for i, tt := range []struct{ chat, config, sender, source, want string }{
		{"telegram:5", `{}`, "telegram:5", "", ""},
		{"telegram:5", `{}`, "telegram:5", msg.SourceReminder, "a reminder began this turn"},
		{"telegram:5", approvers, "telegram:5", "", "no user may answer here: only operators and the approvers of this group (telegram:8) may"},
		{"telegram:8", approvers, "telegram:8", "", ""},
		{"telegram:-5", approvers, "telegram:5", "", ""},
		{"discord:900", approvers, "discord:5", "", "no user may answer here"},
		{"telegram:-5", `{}`, "telegram:5", "", "no user may answer here: only operators may"},
	} {
		folder := fmt.Sprint("g", i)
		r.write(func(tx *store.Tx) error {
			_, err := tx.PutGroup(&msg.Group{Folder: folder, Config: []byte(tt.config)})
			return err
		})
		turn := newTurn(chat(tt.chat), group(folder))
		r.store(turn, &msg.Message{Content: "slow 9", Sender: tt.sender, Source: tt.source})
		r.m.Dispatch(turn)
		r.await(turn, msg.TurnRunning)
		_, err := r.m.asks.Ask(turn, &rows.Question{AskID: "egress:0", Question: "Allow it?", Options: []string{"Once", "No"}, PayloadHash: "h",
			About: groupconfig.Subject{Host: "example.com"}}, nil, strings.Clone)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
		r.cancelChat(tt.chat)
	}
}
