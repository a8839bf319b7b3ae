package agents

import (
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// announce is the event of an agent that takes turns in.
const announce = `!event {"type":"features","fold":true}; `

// mayTakeIn returns the turns of the group's runs that the agent was allowed to take in.
func (r *harness) mayTakeIn(folder string) (turns []string) {
	for _, in := range r.inputs(folder) {
		if m, ok := in.input.(agentproto.Message); ok && m.Fold {
			turns = append(turns, m.TurnID)
		}
	}
	return turns
}

// wantFolded fails the test unless turns were answered with the answer of another one.
func (r *harness) wantFolded(into *msg.Turn, turns ...*msg.Turn) {
	r.t.Helper()
	for _, t := range turns {
		now := r.await(t, msg.TurnDone)
		if now.Reason != msg.ReasonFolded || now.AnsweredWith != into.ID || len(r.replies(t)) != 0 {
			r.t.Errorf("turn %+v with %q, want one answered with turn %d", now, r.replies(t), into.ID)
		}
	}
}

func TestFold_FrameOfSeveralTurns_IsOneAnswer(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	open, inHand := r.gate("main", "gate"), r.gate("main", "in-hand")
	first := r.ask(announce + `hold gate; take 2; event {"type":"usage","input":5,"cost_usd":0.25}; hold in-hand; sayall all of it`)
	open()
	second, third := r.ask("and this"), r.ask("and that")
	r.until("the agent says what it has taken in", func() bool { return r.progress(third) != nil })
	inHand()
	diff(t, "answer", r.answered(first), []string{"all of it"})
	r.wantFolded(first, second, third)
	if now := r.turn(first.ID); now.Reason != msg.ReasonAnswered || now.AnsweredWith != 0 {
		t.Errorf("turn %+v", now)
	}
	reply := must[[]*msg.Message](r)(factrows.TurnReplies(t.Context(), r.st.Reader, first.ID))[0]
	if reply.ReplyToID != third.ReplyTo {
		t.Errorf("it replies to %s, want the newest, %s", reply.ReplyToID, third.ReplyTo)
	}
	if a, b := r.usage(first).CostUSD, r.usage(second).CostUSD; a != 0.25 || b != 0 {
		t.Errorf("costs %v and %v, want them once", a, b)
	}
	diff(t, "folded", ids(must[[]*msg.Turn](r)(factrows.FoldedInto(t.Context(), r.st.Reader, first.ID))), ids([]*msg.Turn{second, third}))
	diff(t, "the next turn", r.answered(r.ask("hi")), []string{"re: hi"})
}

func ids(turns []*msg.Turn) (all []int64) {
	for _, t := range turns {
		all = append(all, t.ID)
	}
	return all
}

// Of two turns the first is stored for the warm agent's run, and the second still queued when the run, which was busy
// for a moment, takes both.
func TestPiped_QuickTurns_KeepTheirOrder(t *testing.T) {
	r := newHarness(t)
	r.answered(r.ask("hi"))
	const pairs = 30
	for range pairs {
		first, second := newTurn(), newTurn()
		r.store(first, &msg.Message{Content: "first"})
		r.store(second, &msg.Message{Content: "second"})
		r.m.live.signal(ctlConfig)
		r.m.Dispatch(first)
		r.m.Dispatch(second)
		r.answered(first, second)
	}
	for i, in := range r.inputs("main")[1:] {
		if want := []string{"first", "second"}[i%2]; in.prompt.Messages[0].Text != want {
			t.Fatalf("line %d is the %q", i, in.prompt.Messages[0].Text)
		}
	}
}

// An answer replies to the last turn that addresses the bot, as that of a turn with all the rows would.
func TestFold_AddressedTurn_IsRepliedTo(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	open := r.gate("main", "gate")
	first := r.askRows([]*msg.Message{{Content: announce + "hold gate; take 2; sayall done", Verb: msg.VerbMention}})
	open()
	second := r.askRows([]*msg.Message{{Content: "and this", Verb: msg.VerbReply}})
	r.ask("and that")
	r.answered(first)
	if reply := must[[]*msg.Message](r)(factrows.TurnReplies(t.Context(), r.st.Reader, first.ID))[0]; reply.ReplyToID != second.ReplyTo {
		t.Errorf("it replies to %s, want %s", reply.ReplyToID, second.ReplyTo)
	}
}

func TestFold_NotAllowed_TurnsStayApart(t *testing.T) {
	t.Parallel()
	elsewhere := func(t *msg.Turn) { t.Place = "elsewhere" }
	reminder := func(t *msg.Turn) { t.Kind = msg.Broadcast }
	for name, c := range map[string]struct {
		config, first string
		opts          func(*msg.Turn)
		had, want     int
	}{
		"allowed":                {`{}`, announce, func(*msg.Turn) {}, 3, 2},
		"the group queues":       {`{"steer":"queue"}`, announce, func(*msg.Turn) {}, 1, 0},
		"the agent cannot":       {`{}`, "!", func(*msg.Turn) {}, 1, 0},
		"a turn of another tab":  {`{}`, announce, elsewhere, 3, 0},
		"the prompt of reminder": {`{}`, announce, reminder, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			r.configure("main", c.config)
			open := r.gate("main", "gate")
			first := r.ask(c.first + `event {"type":"status","status":"running"}; hold gate; say one`)
			r.until("gated has heard of it", func() bool { return r.progress(first) != nil })
			second, third := r.ask("two", c.opts), r.ask("three")
			r.until("the agent has what it gets before it has answered", func() bool { return len(r.inputs("main")) == c.had })
			open()
			diff(t, "answers", r.answered(first, second, third), []string{"one", "re: two", "re: three"})
			// The third may not overtake the second, which is in hand before it.
			if got := r.mayTakeIn("main"); len(got) != c.want {
				t.Errorf("the agent may take in turns %v, want %d", got, c.want)
			}
		})
	}
}

// Turns that are no turn of the run, or answered, count for nothing beside one that is open.
func TestFold_UnknownTurns_AreIgnored(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	first := r.ask(announce + "say one")
	diff(t, "answer", r.answered(first), []string{"one"})
	other := r.ask("hi", group("other"))
	r.answered(other)
	second := r.ask(`!print "` + frameOf(`{\"status\":\"ok\",\"result\":\"two\",\"turnIds\":[\"1\",\"2\",\"3\",\"99\",\"x\"]}`) + `"`)
	diff(t, "answers", r.answered(first, other, second), []string{"one", "re: hi", "two"})
	third := r.ask(`!print "` + frameOf(`{\"status\":\"ok\",\"result\":\"once more\",\"turnIds\":[\"1\",\"3\"]}`) + `"; say three`)
	r.answered(third)
	diff(t, "answers", r.answered(first, second, third), []string{"one", "two / once more", "three"})
	r.answered(r.ask(`!print "` + frameOf(`{\"status\":\"ok\",\"result\":\"lost\",\"turnIds\":[\"98\",\"99\"]}`) + `"; say four`))
}

// frameOf is a frame in a Go string.
func frameOf(body string) string {
	return agentproto.FrameStart + `\n` + body + `\n` + agentproto.FrameEnd + `\n`
}

// Turns that were taken in are asked again with the one that failed, unless they were answered in part together.
func TestFold_AgentFails_TurnsAreAskedAgainUnlessAnsweredInPart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		then     string
		answers  []string
		attempts int // of the first turn
		reason   msg.Reason
	}{
		"before a part": {"once take 1; once exit 1; say one", []string{"one", "re: two"}, 1, msg.ReasonAnswered},
		"after it":      {"take 1; moreall half; exit 1", []string{"half", ""}, 0, msg.ReasonPartial},
	} {
		r := newHarness(t)
		open := r.gate("main", "gate")
		first := r.ask(announce + "once hold gate; " + tt.then)
		open()
		second := r.ask("two")
		diff(t, name, r.answered(first, second), tt.answers)
		for i, asked := range []*msg.Turn{first, second} {
			now := r.turn(asked.ID)
			if now.Reason != tt.reason || now.Frames != 1 || now.Attempts != tt.attempts*(1-i) {
				t.Errorf("%s: turn %+v", name, now)
			}
		}
	}
}

func TestFold_OneTurnCancelled_OthersAreAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cancelled int
		want      []string
	}{
		"the turn that was taken in": {1, []string{"both", ""}},
		"the turn under way":         {0, []string{"", "re: two"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, impatient)
			open, inHand := r.gate("main", "gate"), r.gate("main", "in-hand")
			turns := []*msg.Turn{r.ask(announce + "hold gate; take 1; hold in-hand; sayall both")}
			open()
			turns = append(turns, r.ask("two"))
			r.until("the agent has taken it in", func() bool { return r.progress(turns[1]) != nil })
			r.cancel(turns[c.cancelled])
			if c.cancelled == 1 {
				inHand()
			}
			for i, asked := range turns {
				if i == c.cancelled {
					r.await(asked, msg.TurnCancelled)
				} else {
					diff(t, "answer", r.answered(asked), []string{c.want[i]})
				}
			}
		})
	}
}

// A gated that is killed before the answer is stored asks each turn again; after it, none.
func TestFold_KilledGated_TurnsAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	r := newHarness(t, impatient)
	r.stop()
	row, turns := r.leftBehind(3, "one", "two", "three")
	r.write(func(tx *store.Tx) error {
		return gatedtest.AnswerTurn(tx, rows.Reply{
			RunID: row.ID, TurnID: turns[0].ID, With: []rows.Folded{{TurnID: turns[1].ID}}, Text: "both", Final: true, Sender: "agent:main",
		}, r.cfg.Now().UnixMilli())
	})
	r.start()
	diff(t, "answers", r.answered(turns...), []string{"both", "", "re: three"})
	r.wantFolded(turns[0], turns[1])
}

// TestNotes_AgentFolds_ReadsThemAtOnce: changes of users while the agent works reach it before it has answered, if it
// takes turns in. Queued again, the notes are a part of the turn.
func TestNotes_AgentFolds_ReadsThemAtOnce(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	open := r.gate("main", "gate")
	first := r.ask(announce + `event {"type":"status","status":"running"}; hold gate; take 1; sayall done`)
	r.until("gated has heard of it", func() bool { return r.progress(first) != nil })
	note := &msg.Message{ChatJID: first.ChatJID, PlatformID: "note", Direction: msg.In, Verb: msg.VerbEdit, Content: "better so",
		TargetID: first.ReplyTo, Topic: first.Place, Timestamp: 1, ReceivedAt: 1}
	r.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(note); err != nil {
			return err
		}
		return tx.Decide(note.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonEditNote, RoutedTo: first.Folder,
			Topic: note.Topic}, 1)
	})
	r.m.Changed(r.turn(first.ID))
	r.until("the agent has it", func() bool { return len(r.inputs("main")) == 2 })
	notes := r.turn(must[*msg.Message](r)(r.st.Message(t.Context(), note.ID)).TurnID)
	open()
	diff(t, "answer", r.answered(first), []string{"done"})
	r.wantFolded(first, notes)
}

// TestCancel_TurnBehindAnother_IsNotAnswered: it is interrupted as soon as the agent comes to it.
func TestCancel_TurnBehindAnother_IsNotAnswered(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	open := r.gate("main", "gate")
	first := r.ask(announce + "hold gate; say one")
	second, third := r.ask("!hold never; say two"), r.ask("three")
	r.await(third, msg.TurnRunning)
	before := r.turn(second.ID)
	r.write(func(tx *store.Tx) error { return rows.CancelTurn(tx, second.ID, msg.ReasonDeleted, 1) })
	r.m.Changed(before)
	open()
	diff(t, "answers", r.answered(first, third), []string{"one", "re: three"})
	if now := r.turn(second.ID); now.State != msg.TurnCancelled || len(r.replies(second)) != 0 {
		t.Errorf("turn %+v", now)
	}
}
