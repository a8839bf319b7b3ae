package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// question stores a question of a running turn, whose message is delivered with an id, "" for one that is being sent.
func (h *harness) question(chat, id string, who msg.Who, change ...func(*rows.Question)) *msg.Ask {
	h.t.Helper()
	return h.questionIn(chat, "", id, who, change...)
}

// questionIn is question in a thread.
func (h *harness) questionIn(chat, thread, id string, who msg.Who, change ...func(*rows.Question)) *msg.Ask {
	h.t.Helper()
	q := &rows.Question{AskID: "q" + id, Question: "Which?", Options: []string{"Allow once", "Deny"}, Who: who, Name: "ari", ExpiresAt: h.g.now() + 600_000}
	for _, f := range change {
		f(q)
	}
	var a *msg.Ask
	trigger := &msg.Message{ChatJID: chat, Direction: msg.In, Content: "work"}
	h.write(func(tx *store.Tx) (err error) {
		if _, _, err = tx.PutMessage(trigger); err != nil {
			return err
		}
		turn := &msg.Turn{Kind: msg.Conversation, Folder: "q" + strings.NewReplacer(":", "", ".", "").Replace(id+chat), ChatJID: chat, ThreadID: thread, TriggerMessageID: trigger.ID, CreatedAt: h.g.now()}
		if _, err = rows.PutTurn(tx, turn, 0); err != nil {
			return err
		}
		if err = tx.Decide(trigger.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: turn.Folder, TurnID: turn.ID}, h.g.now()); err != nil {
			return err
		}
		if err = rows.StartRun(tx, &msg.Run{Folder: turn.Folder, ChatJID: chat, StartedAt: h.g.now()}, turn.ID); err != nil {
			return err
		}
		if a, err = rows.PutAsk(tx, turn, q, h.g.now()); err != nil {
			return err
		}
		if err = tx.ClaimOutbound(a.MessageID, 1, 1); err != nil || id == "" {
			return err
		}
		if err = tx.PutDelivery(store.Delivery{MessageID: a.MessageID, State: msg.OutSent, PlatformID: id}, 1); err != nil {
			return err
		}
		return tx.SettleOutbound(a.MessageID, msg.OutSent, id)
	})
	return a
}

// press stores a press of a button of the message with an id.
func (h *harness) press(chat, target, sender, content string) *msg.Message {
	h.t.Helper()
	return h.put(content, verb(msg.VerbAnswer), in(chat), func(m *msg.Message) { m.Sender, m.SenderName, m.TargetID = sender, "Ann", target })
}

func pressOf(a *msg.Ask, option int) string { return msg.Press{Ask: a.ID, Option: option}.JSON() }

func (h *harness) stateOf(a *msg.Ask) string {
	h.t.Helper()
	now := storetest.Must(h.st.Ask(h.t.Context(), a.ID))(h.t)
	return strings.TrimSpace(fmt.Sprint(now.State, " ", now.Option, " ", now.AnsweredBy))
}

func TestAnswer_Press_ClosesTheQuestionOnce(t *testing.T) {
	h := parallel(t)
	a := h.question(dm, "77", msg.Who{Everyone: true})
	first, second := h.press(dm, "77", "telegram:1", pressOf(a, 2)), h.press(dm, "77", "telegram:1", pressOf(a, 1))
	h.step()
	h.is(first, "observed/chosen ")
	h.is(second, "dropped/choice_late ")
	h.ends(h.press(dm, "77", "telegram:1", pressOf(a, 1)), "dropped/choice_late ")
	if got := h.stateOf(a); got != "answered Deny telegram:1" {
		t.Errorf("the question is %s", got)
	}
	if h.agents.asksEnded != 1 || len(h.dispatched()) != 0 {
		t.Errorf("%d calls of AskEnded, turns %v", h.agents.asksEnded, h.dispatched())
	}
}

func TestAnswer_PressThatDoesNotCount_IsDroppedWithAReason(t *testing.T) {
	h := parallel(t)
	only := msg.Who{Senders: []string{"telegram:1"}, Label: "Ann"}
	a, other := h.question("telegram:-5", "77", only), h.question("telegram:-6", "78", only)
	denied, foreign := h.press("telegram:-5", "77", "telegram:2", pressOf(a, 1)), h.press("telegram:-5", "77", "telegram:1", pressOf(other, 1))
	copied := h.press("telegram:-5", "99", "telegram:1", pressOf(a, 1))
	h.step()
	h.is(denied, "dropped/choice_denied ")
	h.are("dropped/choice_unknown ", foreign, copied)
	for _, content := range []string{pressOf(a, 3), pressOf(a, 0), `{"ask":999,"option":1}`, "nonsense", ""} {
		h.ends(h.press("telegram:-5", "77", "telegram:1", content), "dropped/choice_unknown ")
	}
	if got := h.stateOf(a) + h.stateOf(other); got != "openopen" {
		t.Errorf("the questions are %s", got)
	}
	late := h.question("telegram:-5", "79", only, func(q *rows.Question) { q.ExpiresAt = 1 })
	h.ends(h.press("telegram:-5", "79", "telegram:1", pressOf(late, 1)), "dropped/choice_late ")
}

// A user may press before the adapter has stored the id of the message; foreign adapters name the option.
func TestAnswer_Press_OtherForms(t *testing.T) {
	h := parallel(t)
	sending := h.question(dm, "", msg.Who{Everyone: true})
	h.ends(h.press(dm, "123", "telegram:1", pressOf(sending, 1)), "observed/chosen ")
	for id, content := range map[string]string{"81": "2", "82": "allow once"} {
		h.question(dm, id, msg.Who{Everyone: true})
		h.ends(h.press(dm, id, "telegram:1", content), "observed/chosen ")
	}
}

// The adapter may store the id of the message while the press is read, between any two reads.
func TestAnswer_IDIsStoredMeanwhile_PressCounts(t *testing.T) {
	h := parallel(t)
	for n := range 40 {
		chat, id := fmt.Sprint("telegram:5", n), fmt.Sprint(500+n)
		a := h.question(chat, "", msg.Who{Everyone: true})
		m := h.press(chat, id, "telegram:1", pressOf(a, 1))
		settled := make(chan error, 1)
		go func() {
			settled <- h.st.Write(t.Context(), func(tx *store.Tx) error {
				if err := tx.PutDelivery(store.Delivery{MessageID: a.MessageID, State: msg.OutSent, PlatformID: id}, 1); err != nil {
					return err
				}
				return tx.SettleOutbound(a.MessageID, msg.OutSent, id)
			})
		}()
		h.step()
		if err := <-settled; err != nil {
			t.Fatal(err)
		}
		h.step()
		h.is(m, "observed/chosen ")
	}
}

func TestAnswer_Text_IsRecognisedWhereItIsClear(t *testing.T) {
	h := parallel(t)
	ann := msg.Who{Senders: []string{"telegram:1"}, Label: "Ann"}
	inDM, inGroup := h.question(dm, "77", ann), h.question("telegram:-5", "78", ann)
	by := func(sender, chat, text, replyTo string) *msg.Message {
		return h.take(text, in(chat), func(m *msg.Message) { m.Sender, m.ReplyToID = sender, replyTo })
	}
	for _, m := range []*msg.Message{by("telegram:1", "telegram:-5", "1", ""), by("telegram:1", "telegram:-5", "3", "78"), by("telegram:1", dm, "Deny it", "")} {
		if got := h.row(m.ID); got.Reason == msg.ReasonChosen || got.Reason == msg.ReasonChoiceDenied {
			t.Errorf("%q is %s/%s", m.Content, got.Disposition, got.Reason)
		}
	}
	denied := by("telegram:2", "telegram:-5", "1", "78")
	h.is(denied, "dropped/choice_denied ")
	if got := h.replies(denied); len(got) != 1 || got[0] != "Only Ann may answer this." {
		t.Errorf("replies %q", got)
	}
	h.is(by("telegram:1", "telegram:-5", " 2. ", "78"), "observed/chosen ")
	h.is(by("telegram:1", dm, "allow ONCE", ""), "observed/chosen ")
	if got := h.stateOf(inDM) + ", " + h.stateOf(inGroup); got != "answered Allow once telegram:1, answered Deny telegram:1" {
		t.Errorf("the questions are %s", got)
	}
	if m := by("telegram:1", dm, "1", ""); h.row(m.ID).Reason == msg.ReasonChoiceLate {
		t.Error("without an open question a number is no answer")
	}
}

// A text from before a question does not answer it, even if it comes later.
func TestAnswer_TextOfBefore_IsNoAnswer(t *testing.T) {
	h := parallel(t)
	h.put("hello", in(dm)) // makes the chat
	h.step()
	waiting := h.put("1", in(dm))
	a := h.question(dm, "77", msg.Who{Everyone: true}, func(q *rows.Question) { q.PayloadHash = "sha256:1" })
	held := h.take("1", in(dm), func(m *msg.Message) { m.Timestamp = h.g.now() - 2*lateArrival.Milliseconds() })
	for _, m := range []*msg.Message{waiting, held} {
		if got := h.row(m.ID); got.Reason == msg.ReasonChosen {
			t.Errorf("row %d is %s/%s", m.ID, got.Disposition, got.Reason)
		}
	}
	if got := h.stateOf(a); got != "open" {
		t.Errorf("the question is %s", got)
	}
	h.is(h.take("1", in(dm)), "observed/chosen ")
}

// A number below something else that the bot has said may be about that. The option's text and a reply are clear.
func TestAnswer_NumberBelowMoreOfTheBot_IsOrdinaryText(t *testing.T) {
	h := parallel(t)
	for n, tt := range []struct {
		source, text, replyTo string
		chosen                bool
	}{
		{msg.SourceReminder, "1", "", false}, {msg.SourceBroadcast, "1", "", false}, {msg.SourceTool, "\uff11", "", false}, {msg.SourceAgent, "1.", "", false},
		{msg.SourceAgent, "allow once", "", true}, {msg.SourceAgent, "1", "reply", true}, {msg.SourceCommand, "1", "", true}, {msg.SourceNotice, "1", "", true},
	} {
		chat, id := fmt.Sprint("telegram:5", n), fmt.Sprint(70+n)
		h.put("hello", in(chat)) // makes the chat
		h.step()
		a := h.question(chat, id, msg.Who{Everyone: true}, func(q *rows.Question) { q.PayloadHash = "sha256:1" })
		h.write(func(tx *store.Tx) error {
			_, _, err := tx.PutMessage(&msg.Message{
				ChatJID: chat, Direction: msg.Out, IsBot: true, Content: "Tea (1) or coffee (2)?", Source: tt.source, OutState: msg.OutQueued, Timestamp: h.g.now(), ReceivedAt: h.g.now(),
			})
			return err
		})
		m := h.put(tt.text, in(chat), func(m *msg.Message) {
			if tt.replyTo != "" {
				m.ReplyToID = id
			}
		})
		h.step()
		if got := h.row(m.ID); (got.Reason == msg.ReasonChosen) != tt.chosen {
			t.Errorf("%+q below a row of %s is %s/%s, the question %s", tt.text, tt.source, got.Disposition, got.Reason, h.stateOf(a))
		}
	}
}

// A number that is the caption of a file, or stands below a quoted post of another chat, is for the agent.
func TestAnswer_NumberWithFileOrQuote_IsOrdinaryText(t *testing.T) {
	h := parallel(t)
	h.put("hello", in(dm)) // makes the chat
	h.step()
	a := h.question(dm, "77", msg.Who{Everyone: true}, func(q *rows.Question) { q.PayloadHash = "sha256:1" })
	for name, change := range map[string]func(*msg.Message){
		"a file":                     func(m *msg.Message) { m.Attachments = []msg.Attachment{{Name: "plan.png"}} },
		"a file of the reply to it":  func(m *msg.Message) { m.Attachments, m.ReplyToID = []msg.Attachment{{Name: "plan.png"}}, "77" },
		"a file that is not fetched": func(m *msg.Message) { m.PendingFiles = 1 },
		"a quote":                    func(m *msg.Message) { m.Quote = "Pick 1 or 2" },
	} {
		m := h.take("1", in(dm), change)
		if got := h.row(m.ID); got.Reason == msg.ReasonChosen || h.stateOf(a) != "open" {
			t.Errorf("with %s the row is %s/%s, the question %s", name, got.Disposition, got.Reason, h.stateOf(a))
		}
	}
	h.is(h.take("1", in(dm), func(m *msg.Message) { m.ReplyToID, m.Quote = "77", "Allow once" }), "observed/chosen ")
}

func stopOf(turn int64) string { return msg.Press{Stop: turn, Text: msg.StopLabel}.JSON() }

// Slack's users reply in threads: a text there by the user of its only open question may answer it.
func TestAnswer_TextInAThread_IsOfTheQuestionsUserAlone(t *testing.T) {
	h := parallel(t)
	const chat, thread = "slack:C1", "9.1"
	ann := msg.Who{Senders: []string{"slack:U1"}, Label: "Ann"}
	ask := func(id, hash string) *msg.Ask {
		return h.questionIn(chat, thread, id, ann, func(q *rows.Question) { q.PayloadHash = hash })
	}
	by := func(sender, thread, replyTo string) *msg.Message {
		return h.take("2", in(chat), func(m *msg.Message) { m.Sender, m.ThreadID, m.ReplyToID = sender, thread, replyTo })
	}
	permission := ask("77", "h")
	by("slack:U1", thread, thread)
	a := ask("78", "")
	by("slack:U2", thread, thread)
	by("slack:U1", "", "")
	by("slack:U1", thread, "55")
	if got := h.stateOf(permission) + h.stateOf(a); got != "openopen" {
		t.Fatalf("the questions are %s", got)
	}
	h.is(by("slack:U1", thread, thread), "observed/chosen ")
	if got := h.stateOf(a); got != "answered Deny slack:U1" {
		t.Errorf("the question is %s", got)
	}
}

// The press of a Stop button ends its turn, once, as long as the turn has not ended, and nothing else.
func TestStop_Pressed_EndsItsTurnAlone(t *testing.T) {
	h := parallel(t)
	asked, bobs := h.put("queued"), h.put("#other queued", from("telegram:8"))
	h.step()
	turn := h.row(asked.ID).TurnID
	other := h.press("telegram:2", "77", "telegram:1", stopOf(turn))
	unknown := h.press(dm, "77", "telegram:1", stopOf(turn+100))
	bot := h.put(stopOf(turn), verb(msg.VerbAnswer), ofBot)
	old := h.take(stopOf(turn), verb(msg.VerbAnswer), func(m *msg.Message) { m.Timestamp -= (72 * time.Hour).Milliseconds() })
	for _, m := range []*msg.Message{other, unknown, bot, old} {
		h.is(m, "dropped/stop_late ")
	}
	h.turnIs(turn, msg.TurnQueued)
	h.routd.route(func(it routeapi.Item, a *routeapi.Answer) { // a press is routed like a message
		if quietly(it, a); it.Verb != msg.VerbMessage {
			unrouted(it, a)
			a.Home = ""
		}
	})
	held := h.take("held", from("telegram:8"))
	pressed := h.press(dm, "77", "telegram:1", stopOf(turn))
	h.step()
	h.is(held, "")
	derived, err := h.st.DerivedFrom(t.Context(), bobs.ID)
	if err != nil || len(derived) != 1 {
		t.Fatalf("derived rows %+v, %v", derived, err)
	}
	h.turnIs(derived[0].TurnID, msg.TurnQueued)
	h.is(pressed, "command/command ")
	diff(t, "replies", h.replies(pressed), []string{"stopped"})
	diff(t, "stopped", h.agents.stopped, [][]int64{{turn}})
	h.turnIs(turn, msg.TurnCancelled)
	next := h.put("the next one")
	h.wait(2 * maxHold)
	h.ends(h.press(dm, "77", "telegram:1", stopOf(turn)), "dropped/stop_late ")
	h.turnIs(h.row(next.ID).TurnID, msg.TurnQueued)
}

// The press of an Undo button counts for ten minutes after the end of its turn, in its chat.
func TestUndo_PressedLate_IsDropped(t *testing.T) {
	h := parallel(t)
	asked := h.put("queued")
	h.step()
	turn := h.row(asked.ID).TurnID
	content := msg.Press{Undo: turn, Text: msg.UndoLabel}.JSON()
	late := func(chat string) *msg.Message {
		t.Helper()
		m := h.press(chat, "77", "telegram:1", content)
		h.step()
		h.is(m, "dropped/undo_late ")
		return m
	}
	running := late(dm)
	ended := h.row(running.ID).ReceivedAt - msg.UndoTime.Milliseconds() - 1
	if err := h.st.Write(t.Context(), func(tx *store.Tx) error {
		return tx.Exec(`UPDATE turns SET state = 'done', ended_at = ? WHERE id = ?`, ended, turn)
	}); err != nil {
		t.Fatal(err)
	}
	late(dm)
	late("telegram:2")
}

// A question about a budget is open for a day: texts do not answer it meanwhile, but for the words of its button.
func TestAnswer_TypedWhileABudgetIsAskedFor_IsText(t *testing.T) {
	h := parallel(t)
	budget := h.question(dm, "77", msg.Who{Senders: []string{"telegram:77"}, Label: "operators"}, func(q *rows.Question) {
		q.AskID, q.Options = rows.BudgetScope{Folder: "q77", Day: "2026-11-23"}.AskID(1), []string{"Raise it", "No"}
	})
	isText := func(m *msg.Message) {
		h.step()
		if got := h.row(m.ID); got.Disposition == "" || got.Reason == msg.ReasonChosen || got.Reason == msg.ReasonChoiceDenied {
			t.Errorf("%q is %s/%s", m.Content, got.Disposition, got.Reason)
		}
	}
	for _, text := range []string{"no", "1", "2"} {
		isText(h.put(text, in(dm), from("telegram:77")))
	}
	agents := h.question(dm, "78", msg.Who{Everyone: true})
	chosen := h.take("2", in(dm), from("telegram:77"))
	h.is(chosen, "observed/chosen ")
	if got := h.stateOf(agents); got != "answered Deny telegram:77" {
		t.Errorf("the agent's question is %s", got)
	}
	h.is(h.take(" raise IT ", in(dm), from("telegram:77")), "observed/chosen ")
	if got := h.stateOf(budget); got != "answered Raise it telegram:77" || h.agents.revived != 1 {
		t.Errorf("the question is %s, %d calls of Revived", got, h.agents.revived)
	}
	isText(h.put("no", in(dm), from("telegram:77"), func(m *msg.Message) { m.ReplyToID = "77" })) // it has ended
}

// A text that matches an option, but doesn't say which question it answers, does not wait behind the question.
func TestAnswer_TextThatMisses_SaysSo(t *testing.T) {
	h := parallel(t)
	ann := msg.Who{Senders: []string{"telegram:7"}, Label: "Ann"}
	for _, jid := range []string{dm, "telegram:-5", "telegram:-6"} {
		h.question(jid, "1", ann)
	}
	h.question(dm, "2", ann)
	sending := h.question("telegram:8", "", msg.Who{Everyone: true}, func(q *rows.Question) { q.PayloadHash = "h" })
	for _, tt := range []struct {
		chat, text string
		set        func(*msg.Message)
		missed     bool
	}{
		{dm, "2", nil, true}, {dm, "Allow once", nil, true}, {dm, "3", nil, false}, {dm, "2 more", nil, false},
		{"telegram:-5", "@ari deny", func(m *msg.Message) { m.Addressed, m.Verb = true, msg.VerbMention }, true},
		{"telegram:-5", "2", func(m *msg.Message) { m.Addressed = true }, true},
		{"telegram:-5", "2", func(m *msg.Message) { m.Addressed, m.Sender = true, "telegram:66" }, false},
		{"telegram:-5", "2", nil, false},
		{"telegram:-6", "@ari 2", func(m *msg.Message) { m.Addressed, m.ReplyToID = true, "p99" }, false},
	} {
		m := h.take(tt.text, in(tt.chat), tt.set)
		if got := h.row(m.ID).Reason == msg.ReasonChoiceUnknown && strings.Join(h.replies(m), "") == "Reply to the question, or press a button."; got != tt.missed {
			t.Errorf("%q in %s: %s %q", tt.text, tt.chat, h.row(m.ID).Reason, h.replies(m))
		}
	}
	h.take("1", in("telegram:8"))
	if got := h.stateOf(sending); got != "open" {
		t.Errorf("a permission is given before it is shown: %s", got)
	}
}

func TestAnswer_DeletedQuestion_Ends(t *testing.T) {
	h := parallel(t)
	a, other := h.question("telegram:-5", "1", msg.Who{Everyone: true}), h.question("telegram:-6", "2", msg.Who{Everyone: true})
	h.put("", in("telegram:-5"), verb(msg.VerbDelete), func(m *msg.Message) { m.TargetID = "1" })
	h.put("", in("telegram:-5"), verb(msg.VerbDelete), func(m *msg.Message) { m.TargetID = "2" }) // of another chat
	h.step()
	if got := h.stateOf(a) + " " + h.stateOf(other); got != "expired open" || h.agents.asksEnded == 0 {
		t.Errorf("the questions are %s, %d calls of AskEnded", got, h.agents.asksEnded)
	}
	a, _ = h.st.Ask(t.Context(), a.ID)
	if why, err := rows.AskLost(t.Context(), h.st.Reader, a); err != nil || why != "its message was deleted before anyone answered it" {
		t.Errorf("the agent hears %q, %v", why, err)
	}
	if changes, err := h.st.DerivedFrom(t.Context(), a.MessageID); err != nil || len(changes) > 0 {
		t.Errorf("the deleted message is edited: %v, %v", changes, err)
	}
}
