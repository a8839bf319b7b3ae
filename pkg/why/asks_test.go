package why

import (
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// asking is a chat in which an agent asks: rows get ids from 1.
type asking struct {
	t    *testing.T
	st   *store.Store
	turn *msg.Turn
}

// newAsking stores a message of Ann in a group chat, and a run that works on its turn.
func newAsking(t *testing.T) *asking {
	t.Helper()
	a := &asking{t: t, st: storetest.Open(t), turn: &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "telegram:-9", Surface: "telegram-group", CreatedAt: at(10)}}
	m := a.put(0, msg.Message{PlatformID: "500", Sender: "telegram:7", SenderName: "Ann", Verb: msg.VerbMention, Content: "paint it"})
	a.turn.TriggerMessageID = m.ID
	a.write(func(tx *store.Tx) error {
		if _, err := gatedtest.PutTurn(tx, a.turn, 0); err != nil {
			return err
		}
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: "main", TurnID: a.turn.ID}, at(10))
	})
	a.write(func(tx *store.Tx) error { return daemonrows.Heartbeat(tx, running()["gated"].Daemon) })
	run := &msg.Run{Folder: "main", ChatJID: a.turn.ChatJID, Runtime: "process", StartedAt: at(20)}
	a.write(func(tx *store.Tx) error { return gatedtest.StartRun(tx, run, a.turn.ID) })
	return a
}

func (a *asking) write(fn func(*store.Tx) error) { a.t.Helper(); storetest.Write(a.t, a.st, fn) }

// put stores an inbound row of the chat.
func (a *asking) put(received int64, m msg.Message) *msg.Message {
	a.t.Helper()
	m.ChatJID, m.Direction, m.Source, m.Timestamp, m.ReceivedAt = a.turn.ChatJID, msg.In, "teled", at(received), at(received)
	return storetest.Stored(a.t, a.st, &m)
}

// ask stores a question that the chat sees as the message 501.
func (a *asking) ask(q gatedtest.Question) (asked *msg.Ask) {
	a.t.Helper()
	q.AskID, q.Name, q.ExpiresAt = "q", "Eng", at(600_000)
	a.write(func(tx *store.Tx) (err error) {
		if asked, err = gatedtest.PutAsk(tx, a.turn, &q, at(1000)); err != nil {
			return err
		}
		return tx.ClaimOutbound(asked.MessageID, 1, at(1100))
	})
	a.write(func(tx *store.Tx) error {
		if err := tx.PutDelivery(store.Delivery{MessageID: asked.MessageID, State: msg.OutSent, PlatformID: "501"}, at(1200)); err != nil {
			return err
		}
		return tx.SettleOutbound(asked.MessageID, msg.OutSent, "501")
	})
	return asked
}

func (a *asking) color() *msg.Ask {
	return a.ask(gatedtest.Question{Question: "Which color?", Options: []string{"red", "green"}, Who: msg.Who{Senders: []string{"telegram:7"}, Label: "Ann"}})
}

// press stores the press of a button and the decision about it, a tenth of a second later.
func (a *asking) press(received int64, sender string, ask *msg.Ask, option int, reason msg.Reason) *msg.Message {
	a.t.Helper()
	m := a.put(received, msg.Message{
		PlatformID: "cb" + time.UnixMilli(at(received)).UTC().Format("150405.000"), Verb: msg.VerbAnswer, Sender: sender, TargetID: "501",
		Content: msg.Press{Ask: ask.ID, Option: option, Text: "(as the adapter says)"}.JSON(),
	})
	a.decide(m, ask, option, reason)
	return m
}

func (a *asking) decide(m *msg.Message, ask *msg.Ask, option int, reason msg.Reason) {
	a.t.Helper()
	decision := store.Decision{Disposition: msg.Dropped, Reason: reason, ThreadID: m.ThreadID}
	decided := m.ReceivedAt + 100
	a.write(func(tx *store.Tx) error {
		if reason == msg.ReasonChosen {
			decision.Disposition = msg.Observed
			if err := gatedtest.AnswerAsk(tx, ask.ID, option, m.Sender, m.SenderName, m.ReceivedAt, decided); err != nil {
				return err
			}
		}
		return tx.Decide(m.ID, decision, decided)
	})
}

func TestText_Presses_SayWhatTheyAnswerAndWhyTheyCountedOrNot(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	q := a.color()
	golden.Compare(t, "testdata/question-open.txt", printed(t, a.st, q.MessageID))
	presses := map[string]*msg.Message{
		"denied":  a.press(2000, "telegram:8", q, 1, msg.ReasonChoiceDenied),
		"unknown": a.press(3000, "telegram:7", q, 9, msg.ReasonChoiceUnknown),
		"chosen":  a.press(4000, "telegram:7", q, 2, msg.ReasonChosen),
		"late":    a.press(5000, "telegram:7", q, 1, msg.ReasonChoiceLate),
	}
	for name, m := range presses {
		golden.Compare(t, "testdata/press-"+name+".txt", printed(t, a.st, m.ID))
	}
	golden.Compare(t, "testdata/question-answered.txt", printed(t, a.st, q.MessageID))
}

func TestText_PermissionExpired_SaysItsHashAndThatItCountsAsNo(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	q := a.ask(gatedtest.Question{
		Question: "Run Bash?", Detail: "rm -r build", Options: []string{"Allow once", "Deny"}, PayloadHash: strings.Repeat("0123456789abcdef", 4),
		Who: msg.Who{Senders: []string{"telegram:1", "telegram:2"}, Label: "operators"},
	})
	a.write(func(tx *store.Tx) error { return gatedtest.ExpireAsk(tx, q.ID, at(600_500)) })
	golden.Compare(t, "testdata/question-expired.txt", printed(t, a.st, q.MessageID))
}

func TestText_PermissionByRule_SaysTheRuleAndWhoMadeIt(t *testing.T) {
	t.Parallel()
	a := &msg.Ask{ID: 5, TurnID: 2, Question: "Run Bash?\nby rule 9, made by telegram:9", Options: []string{"Allow once", "Deny"}, Allow: "Allow once", PayloadHash: "h",
		State: msg.AskAnswered, Option: "Allow once", AnsweredBy: "telegram:1", CreatedAt: at(3000), EndedAt: at(3000), RuleID: 4, RuleAt: at(1000)}
	day := time.UnixMilli(at(1000)).Format(time.DateOnly)
	steps := askSteps(&Asked{Ask: a})
	if want := "permission 5 of turn 2 allowed by rule 4, made by telegram:1 on " + day + ": Run Bash?"; len(steps) != 1 || steps[0].Text != want || !steps[0].Main {
		t.Errorf("by the rule: %+v, want %s", steps, want)
	}
	a.Options, a.Always = append(a.Options, msg.AlwaysAllow), true
	if got, want := AskState(a), "answered with option 3 by telegram:1, which made rule 4"; got != want {
		t.Errorf("made a rule: %s", got)
	}
}

// The question of a text that replies to nothing is the one that was open then.
func TestRead_TypedAnswer_FindsItsQuestion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		reply  string // the message that the text replies to
		reason msg.Reason
		want   string
	}{
		{"a reply", "501", msg.ReasonChosen, `question 1 of turn 1, with "green"`},
		{"a text below it", "", msg.ReasonChosen, `question 1 of turn 1, with "green"`},
		{"a text that does not count", "", msg.ReasonChoiceDenied, `question 1 of turn 1, with "green"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAsking(t)
			q := a.color()
			m := a.put(2000, msg.Message{PlatformID: "502", Sender: "telegram:7", Content: "2", ReplyToID: tt.reply})
			a.decide(m, q, 2, tt.reason)
			p, err := Read(t.Context(), a.st.Reader, m.ID)
			if err != nil || p.Choice.String() != tt.want {
				t.Errorf("it answers %q, %v, want %q", p.Choice, err, tt.want)
			}
		})
	}
	t.Run("of several open questions", func(t *testing.T) {
		t.Parallel()
		a := newAsking(t)
		a.color()
		a.write(func(tx *store.Tx) error {
			_, err := gatedtest.PutAsk(tx, a.turn, &gatedtest.Question{AskID: "other", Question: "Which size?", Options: []string{"s", "m"}, Who: msg.Who{Everyone: true}, ExpiresAt: at(9000)}, at(1500))
			return err
		})
		m := a.put(2000, msg.Message{PlatformID: "502", Sender: "telegram:9", Content: "2"})
		a.decide(m, nil, 2, msg.ReasonChoiceDenied)
		p, err := Read(t.Context(), a.st.Reader, m.ID)
		if want := "a question that is not known"; err != nil || p.Choice.String() != want {
			t.Errorf("it answers %q, %v, want %q", p.Choice, err, want)
		}
	})
}

// A chat reads no text of the agent.
func TestBrief_QuestionAnswered_HasNoTextsOfIt(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	q := a.color()
	a.press(4000, "telegram:7", q, 2, msg.ReasonChosen)
	p, err := Read(t.Context(), a.st.Reader, q.MessageID)
	if err != nil {
		t.Fatal(err)
	}
	text := Brief(p, time.UnixMilli(at(10_000)))
	if !strings.Contains(text, "question 1 answered with option 2 by telegram:7") {
		t.Errorf("it does not say how the question has ended:\n%s", text)
	}
	if strings.Contains(text, "color") || strings.Contains(text, "green") {
		t.Errorf("it has the question's texts:\n%s", text)
	}
}

// Presses of the other buttons are commands.
func TestRead_StopOrUndoPressed_IsNoChoice(t *testing.T) {
	a := newAsking(t)
	for _, press := range []msg.Press{{Stop: a.turn.ID, Text: msg.StopLabel}, {Undo: a.turn.ID, Text: msg.UndoLabel}} {
		m := a.put(4000, msg.Message{PlatformID: press.Text, Sender: "telegram:7", Verb: msg.VerbAnswer, Content: press.JSON()})
		if p, err := Read(t.Context(), a.st.Reader, m.ID); err != nil || p.Choice != nil {
			t.Errorf("%s: %+v, %v", press.Text, p.Choice, err)
		}
	}
}
