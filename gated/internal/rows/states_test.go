package rows_test

import (
	"errors"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// verbs are the changes of a turn's state. run is the turn's, if it has one; other is a live run without a turn.
var verbs = map[string]func(tx *store.Tx, turn *msg.Turn, run, other *msg.Run) error{
	"start": func(tx *store.Tx, turn *msg.Turn, _, other *msg.Run) error {
		run := *other
		run.Topic = "#start"
		return rows.StartRun(tx, &run, turn.ID)
	},
	"take": func(tx *store.Tx, turn *msg.Turn, _, other *msg.Run) error {
		return rows.TakeTurn(tx, turn.ID, other.ID, 300)
	},
	"frame": func(tx *store.Tx, turn *msg.Turn, run, _ *msg.Run) error {
		return gatedtest.AnswerTurn(tx, rows.Reply{RunID: run.ID, TurnID: turn.ID, Text: "part", SessionID: "forged"}, 300)
	},
	"answer": func(tx *store.Tx, turn *msg.Turn, run, _ *msg.Run) error {
		return gatedtest.AnswerTurn(tx, gatedtest.Answer(run, turn, "ok"), 300)
	},
	"finish": func(tx *store.Tx, turn *msg.Turn, _, _ *msg.Run) error {
		return rows.FinishTurn(tx, turn, msg.TurnDone, msg.ReasonPartial, "broke", 300)
	},
	"fail": func(tx *store.Tx, turn *msg.Turn, _, _ *msg.Run) error {
		return rows.FinishTurn(tx, turn, msg.TurnFailed, msg.ReasonAgentError, "broke", 300)
	},
	"cancel": func(tx *store.Tx, turn *msg.Turn, _, _ *msg.Run) error {
		return rows.CancelTurn(tx, turn.ID, msg.ReasonCancelled, 300)
	},
	"over budget": func(tx *store.Tx, turn *msg.Turn, _, _ *msg.Run) error {
		return rows.EndOverBudget(tx, turn, rows.BudgetScope{Turn: turn.ID}, 2, 1, 300)
	},
	"requeue": func(tx *store.Tx, turn *msg.Turn, _, _ *msg.Run) error {
		return rows.RequeueTurn(tx, turn.ID, rows.Requeue{WaitsFor: msg.WaitsRetry, NotBefore: 5000})
	},
	"revive": func(tx *store.Tx, turn *msg.Turn, _, _ *msg.Run) error { return rows.ReviveTurn(tx, turn.ID) },
}

// reached is how a queued turn comes into a state.
var reached = map[string][]string{
	"queued": nil, "waiting": {"requeue"}, "running": {"run"}, "done": {"run", "answer"}, "failed": {"run", "fail"}, "cancelled": {"run", "cancel"},
}

// TestTurnStates has the state in which each verb leaves a turn, by the one before. "-" is ErrStale, and no change.
func TestTurnStates(t *testing.T) {
	t.Parallel()
	columns := strings.Fields("   none queued    waiting   running   done failed cancelled")
	for verb, row := range map[string]string{
		"start":       "           -    running   -         -         -    -      -     ",
		"take":        "           -    running   -         -         -    -      -     ",
		"frame":       "           -    -         -         running   done -      -     ",
		"answer":      "           -    -         -         done      done -      -     ",
		"finish":      "           -    done      done      done      -    -      -     ",
		"fail":        "           -    failed    failed    failed    -    -      -     ",
		"cancel":      "           -    cancelled cancelled cancelled -    -      -     ",
		"over budget": "           -    cancelled cancelled cancelled -    -      -     ",
		"requeue":     "           -    queued    queued    queued    -    -      -     ",
		"revive":      "           -    -         queued    -         -    queued queued",
	} {
		for i, want := range strings.Fields(row) {
			t.Run(verb+" "+columns[i], func(t *testing.T) {
				t.Parallel()
				s := storetest.Open(t)
				first := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic = "#other" })
				other := gatedtest.Begun(t, s, first)
				gatedtest.StoreReply(t, s, gatedtest.Answer(other, first, "ok"), 250)
				turn, run := gatedtest.Queued(t, s), &msg.Run{}
				for _, step := range reached[columns[i]] {
					if step == "run" {
						run = gatedtest.Begun(t, s, turn)
						continue
					}
					storetest.Write(t, s, func(tx *store.Tx) error { return verbs[step](tx, turn, run, other) })
				}
				if columns[i] == "none" {
					turn = &msg.Turn{ID: 4711}
				}
				before := storetest.Must(s.Turn(t.Context(), turn.ID))(t)
				err := s.Write(t.Context(), func(tx *store.Tx) error { return verbs[verb](tx, turn, run, other) })
				after := storetest.Must(s.Turn(t.Context(), turn.ID))(t)
				switch {
				case want != "-" && (err != nil || string(after.State) != want):
					t.Errorf("%v, the turn is %s, want %s", err, after.State, want)
				case want == "-" && !errors.Is(err, store.ErrStale):
					t.Errorf("error %v, want ErrStale", err)
				case want == "-":
					differ(t, "a refusal changed the turn", after, before)
				}
			})
		}
	}
}
