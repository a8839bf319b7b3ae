package rows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// allowable is a permission request that says what allows it.
func allowable(set ...func(*rows.Question)) *rows.Question {
	return permission(append([]func(*rows.Question){func(q *rows.Question) {
		q.Allow, q.About = "Allow once", groupconfig.Subject{Tool: "Bash"}
	}}, set...)...)
}

// grouped is a database with groups.
func grouped(t testing.TB, folders ...string) *store.Store {
	t.Helper()
	s := storetest.Open(t)
	for _, folder := range append(folders, storetest.Folder) {
		storetest.Write(t, s, func(tx *store.Tx) error {
			_, err := tx.PutGroup(&msg.Group{Folder: folder, Config: []byte(`{}`)})
			return err
		})
	}
	return s
}

// inChat is a running turn of a group in a chat, in a topic of its own.
func inChat(t testing.TB, s *store.Store, folder, chat string) *msg.Turn {
	t.Helper()
	trigger := storetest.Inbound(t, s, chat, "hello").ID
	turn := gatedtest.Queued(t, s, func(turn *msg.Turn) {
		turn.Folder, turn.ChatJID, turn.TriggerMessageID, turn.Topic = folder, chat, trigger, fmt.Sprint("t", trigger)
	})
	gatedtest.Begun(t, s, turn)
	return turn
}

// ruled is a database in which telegram:1 always allows a request in a chat.
func ruled(t testing.TB, folders ...string) (s *store.Store, rule *msg.PermissionRule) {
	t.Helper()
	s = grouped(t, folders...)
	first := asked(t, s, inChat(t, s, storetest.Folder, "telegram:-1"), allowable(), 1000)
	if err := answered(s, t, first.ID, 1, 2000); err != nil {
		t.Fatal(err)
	}
	second := asked(t, s, inChat(t, s, storetest.Folder, "telegram:-1"), allowable(), 3000)
	if !slices.Equal(second.Options, []string{"Allow once", "Deny", msg.AlwaysAllow}) || !second.Always {
		t.Fatalf("asked again: %+v", second)
	}
	if err := answered(s, t, second.ID, 3, 4000); err != nil {
		t.Fatal(err)
	}
	got := storetest.Must(s.Ask(t.Context(), second.ID))(t)
	if got.Option != "Allow once" || got.RuleID == 0 || !got.MadeRule() || got.Chosen() != msg.AlwaysAllow {
		t.Fatalf("answered %+v", got)
	}
	all := rulesOf(t, s)
	if len(all) != 1 || all[0].ID != got.RuleID || all[0].Author != "telegram:1" || all[0].Text != "Run Bash?\nrm -r x" || all[0].Tool != "Bash" {
		t.Fatalf("rules %+v", all)
	}
	return s, all[0]
}

func rulesOf(t testing.TB, s *store.Store) []*msg.PermissionRule {
	t.Helper()
	return storetest.Must(factrows.PermissionRules(t.Context(), s.Reader, storetest.Folder))(t)
}

func TestRule_AnswersWhatIsTheSame_AsksElse(t *testing.T) {
	t.Parallel()
	type change = func(*rows.Question)
	everyone := func(q *rows.Question) { q.Who = msg.Who{Everyone: true} }
	for name, tt := range map[string]struct {
		folder, chat string
		change       change
		allowed      bool
	}{
		"the same":             {allowed: true},
		"another chat":         {chat: "telegram:-2", allowed: true},
		"another group":        {folder: "other"},
		"a byte of the hash":   {change: func(q *rows.Question) { q.PayloadHash = "h2" }},
		"the tool":             {change: func(q *rows.Question) { q.About.Tool = "bash" }},
		"no tool":              {change: func(q *rows.Question) { q.About.Tool = "" }},
		"the question":         {change: func(q *rows.Question) { q.Question = "Run bash?" }},
		"the detail":           {change: func(q *rows.Question) { q.Detail = "rm -r  x" }},
		"an option":            {change: func(q *rows.Question) { q.Options = []string{"Allow once", "No"} }},
		"what allows it":       {change: func(q *rows.Question) { q.Allow = "Deny" }},
		"nothing allows it":    {change: func(q *rows.Question) { q.Allow = "" }},
		"author may no longer": {change: func(q *rows.Question) { q.Who.Senders = []string{"telegram:2"} }},
		"each user, its chat":  {chat: "telegram:-1", change: everyone, allowed: true},
		"each user, elsewhere": {chat: "telegram:-2", change: everyone},
		"no user may":          {change: func(q *rows.Question) { q.Who = msg.Who{Label: "operators"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, rule := ruled(t, "other")
			if tt.folder == "" {
				tt.folder = storetest.Folder
			}
			if tt.chat == "" {
				tt.chat = "telegram:-1"
			}
			turn := inChat(t, s, tt.folder, tt.chat)
			q := allowable()
			if tt.change != nil {
				tt.change(q)
			}
			var a *msg.Ask
			err := s.Write(t.Context(), func(tx *store.Tx) (err error) {
				a, err = rows.PutAsk(tx, turn, q, 5000)
				return err
			})
			if q.Who.None() {
				if !errors.Is(err, rows.ErrNoUser) {
					t.Errorf("no user: %+v, %v", a, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			a = storetest.Must(s.Ask(t.Context(), a.ID))(t)
			if a.ByRule() != tt.allowed || (a.State == msg.AskAnswered) != tt.allowed || (a.MessageID == 0) != tt.allowed {
				t.Fatalf("stored %+v", a)
			}
			now := rulesOf(t, s)[0]
			if !tt.allowed {
				if now.Used != 0 {
					t.Errorf("used %+v", now)
				}
				return
			}
			if a.RuleID != rule.ID || a.RuleAt != 4000 || a.AnsweredBy != "telegram:1" || a.Option != "Allow once" || a.EndedAt != 5000 {
				t.Errorf("answered %+v", a)
			}
			again := asked(t, s, turn, q, 6000) // the turn is retried
			if now = rulesOf(t, s)[0]; again.ID != a.ID || now.Used != 1 || now.UsedAt != 5000 {
				t.Errorf("asked again: %+v, rule %+v", again, now)
			}
		})
	}
}

func TestRule_Offered_OnlyForWhatWasAllowed(t *testing.T) {
	t.Parallel()
	ask := func(t *testing.T, s *store.Store, q *rows.Question) *msg.Ask {
		return asked(t, s, inChat(t, s, storetest.Folder, "telegram:-1"), q, 1000)
	}
	for name, tt := range map[string]struct {
		option int // the answer to the first request, 0 for none
		first  func(*rows.Question)
		second func(*rows.Question)
		want   bool
	}{
		"allowed":       {option: 1, want: true},
		"denied":        {option: 2},
		"open":          {},
		"does not say":  {option: 1, first: func(q *rows.Question) { q.Allow = "" }},
		"no permission": {option: 1, first: func(q *rows.Question) { q.PayloadHash = "" }, second: func(q *rows.Question) { q.PayloadHash = "" }},
		"the agent has an option of that name": {option: 1, first: func(q *rows.Question) { q.Options = append(q.Options, "always Allow") },
			second: func(q *rows.Question) { q.Options = append(q.Options, "always Allow") }},
		"two options read alike": {option: 1, first: func(q *rows.Question) { q.Options = []string{"***", "***"}; q.Allow = "***" },
			second: func(q *rows.Question) { q.Options = []string{"***", "***"}; q.Allow = "***" }},
		"another text": {option: 1, second: func(q *rows.Question) { q.Detail = "rm -r y" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := grouped(t)
			first, second := allowable(), allowable()
			if tt.first != nil {
				tt.first(first)
			}
			if tt.second != nil {
				tt.second(second)
			}
			a := ask(t, s, first)
			if tt.option > 0 {
				if err := answered(s, t, a.ID, tt.option, 2000); err != nil {
					t.Fatal(err)
				}
			}
			b := ask(t, s, second)
			if b.Always != tt.want || slices.Contains(b.Options, msg.AlwaysAllow) != tt.want {
				t.Errorf("asked %+v", b)
			}
		})
	}
}

func TestRule_RevokedExpiredFullOrUndone(t *testing.T) {
	t.Parallel()
	s, rule := ruled(t)
	var gone *msg.PermissionRule
	for _, want := range []bool{true, false} { // the second time there is none
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			gone, err = rows.RevokeRule(tx, rule.ID, "web:operator", 5000)
			return err
		})
		if (gone != nil) != want {
			t.Errorf("revoked %+v", gone)
		}
	}
	a := asked(t, s, inChat(t, s, storetest.Folder, "telegram:-1"), allowable(), 6000)
	if a.State != msg.AskOpen || !a.Always {
		t.Errorf("after that %+v", a)
	}
	if err := answered(s, t, a.ID, 3, 600_000); !errors.Is(err, store.ErrStale) || len(rulesOf(t, s)) != 0 {
		t.Errorf("an answer after its time: %v", err)
	}
	failed := errors.New("killed")
	if err := s.Write(t.Context(), func(tx *store.Tx) error {
		return errors.Join(rows.AnswerAsk(tx, a.ID, 3, "telegram:1", "Ann", 7000, 7000), failed)
	}); !errors.Is(err, failed) || len(rulesOf(t, s)) != 0 || storetest.Must(s.Ask(t.Context(), a.ID))(t).State != msg.AskOpen {
		t.Errorf("killed before the commit: %v", err)
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i := range 200 {
			if err := tx.Exec(`INSERT INTO permission_rules (folder, chat_jid, payload_hash, text_hash, text, author, created_at) VALUES (?, '', 'h', ?, '', 'cli', 1)`,
				storetest.Folder, fmt.Sprint(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := answered(s, t, a.ID, 3, 8000); err != nil { // there is no room any more: it is allowed this once
		t.Fatal(err)
	}
	if got := storetest.Must(s.Ask(t.Context(), a.ID))(t); got.RuleID != 0 || got.Option != "Allow once" || got.Chosen() != "Allow once" {
		t.Errorf("without room %+v", got)
	}
	if b := asked(t, s, inChat(t, s, storetest.Folder, "telegram:-1"), allowable(), 9000); b.Always {
		t.Errorf("without room it is offered: %+v", b)
	}
}

func TestRule_TwoQuestionsOfAChat_MakeOneRule(t *testing.T) {
	t.Parallel()
	s := grouped(t)
	first := asked(t, s, inChat(t, s, storetest.Folder, "telegram:-1"), allowable(), 1000)
	if err := answered(s, t, first.ID, 1, 2000); err != nil {
		t.Fatal(err)
	}
	var open []*msg.Ask
	for range 2 {
		open = append(open, asked(t, s, inChat(t, s, storetest.Folder, "telegram:-1"), allowable(), 3000))
	}
	for i, a := range open {
		at := 4000 + int64(i)
		if err := answered(s, t, a.ID, 3, at); err != nil {
			t.Fatal(err)
		}
	}
	if all := rulesOf(t, s); len(all) != 1 || all[0].CreatedAt != 4001 {
		t.Errorf("rules %+v", all)
	}
	ended := storetest.Must(s.Ask(t.Context(), open[0].ID))(t).EndedText("Eng", "Ann_")
	if !strings.HasSuffix(ended, fmt.Sprintf("**Always allow** — answered by Ann\\_ (rule %d)", rulesOf(t, s)[0].ID)) {
		t.Errorf("the chat reads %q", ended)
	}
}
