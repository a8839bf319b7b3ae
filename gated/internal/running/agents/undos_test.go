package agents

import (
	"context"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/undo"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// An undo that cannot be carried out in full ends all the same, and its topic goes on.
func TestUndo_NotPossible_EndsAndSaysWhatIsDone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config func(*Config)
		sql    string
		args   []any
		want   string
	}{
		"the database refuses it": {func(*Config) {}, `CREATE TRIGGER refuse BEFORE UPDATE OF undone_at ON turns
			BEGIN SELECT RAISE(ABORT, 'poisoned'); END`, nil, "This has failed"},
		"ending the window panics": {
			func(cfg *Config) {
				cfg.EndWindow = func(context.Context, msg.Engagement) error { panic("poisoned") }
			},
			`INSERT INTO chat_reply_state (jid, topic, engaged_until, engaged_folder, engaged_at) SELECT 'telegram:1', '', ?, 'main', ended_at FROM turns`,
			[]any{int64(1) << 50}, "Taken back: turn",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, tt.config)
			turn := r.ask("hello", func(t *msg.Turn) { t.ClaimsEngagement = true })
			r.answered(turn)
			r.write(func(tx *store.Tx) error { return tx.Exec(tt.sql, tt.args...) })
			var run int64
			r.write(func(tx *store.Tx) (err error) {
				var refusal string
				_, run, refusal, err = undo.Ask(tx, undo.Request{Turn: turn.ID, By: "telegram:77", Operator: true}, r.cfg.Now().UnixMilli())
				if refusal != "" {
					t.Error(refusal)
				}
				return err
			})
			r.m.Drain(run)
			r.until("the undo has ended", func() bool { return len(must[[]*rows.Undo](r)(rows.OpenUndos(t.Context(), r.st.Reader))) == 0 })
			all := must[[]*factrows.Undo](r)(factrows.Undos(t.Context(), r.st.Reader, turn))
			if len(all) != 1 || !strings.HasPrefix(all[0].Answer, tt.want) || (r.turn(turn.ID).UndoneAt != 0) != (all[0].State == factrows.UndoDone) {
				t.Errorf("undos %+v", all)
			}
			r.answered(r.ask("hello again"))
		})
	}
}
