package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/store/storetest"
)

// recorder is a test that records its errors.
type recorder struct {
	testing.TB
	errs []string
}

func (r *recorder) Helper()           {}
func (r *recorder) Failed() bool      { return len(r.errs) > 0 }
func (r *recorder) Error(args ...any) { r.errs = append(r.errs, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errs = append(r.errs, fmt.Sprintf(format, args...))
}

// checkedFixture is a fixture on a migrated database, with scripts for daemons.
func checkedFixture(t *testing.T, daemons map[string]string) (*Fixture, *recorder) {
	t.Helper()
	i := scripted(t, daemons)
	if err := os.WriteFile(filepath.Join(i.Data, "secret"), []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := storetest.Migrate(i.Database()); err != nil {
		t.Fatal(err)
	}
	f := &Fixture{T: t, Instance: i, Data: i.Data, options: Options{MaxWait: 30 * time.Second}, undecided: map[int64]bool{}}
	f.open()
	t.Cleanup(f.release)
	rec := &recorder{TB: t}
	f.T = rec
	return f, rec
}

const (
	insertUndecided = `INSERT INTO messages (id, chat_jid, platform_id, direction, content, timestamp, received_at)
		VALUES (7, 'telegram:5', 'p7', 'in', 'hello', 1, 1)`
	insertRouted = `INSERT INTO messages (chat_jid, platform_id, direction, content, timestamp, received_at, disposition, reason, routed_to, decided_at, decision_seq)
		VALUES ('telegram:5', 'p8', 'in', 'hello', 1, 1, 'routed', 'route', 'main', 1, 1)`
)

func TestFixture_EndOfTest_ReportsWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		daemon string
		query  string
		want   []string // parts of the errors
	}{
		"nothing":           {polite, ``, nil},
		"exit code":         {rude, ``, []string{"teled ended with exit code 3"}},
		"an undecided row":  {polite, insertUndecided, []string{"rows are undecided: [7]"}},
		"an invariant":      {polite, insertRouted, []string{"a routed row has no turn"}},
		"an agent is alive": {agent, ``, []string{"teled ended with exit code -1", "agents still run"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, rec := checkedFixture(t, map[string]string{"teled": tc.daemon})
			if tc.query != "" {
				f.Exec(tc.query)
			}
			start(t, f.Instance, "teled")
			f.checkEnd()
			matches := func(got, want string) bool { return strings.Contains(got, want) }
			if !slices.EqualFunc(rec.errs, tc.want, matches) {
				t.Errorf("errors %q, want %q", rec.errs, tc.want)
			}
		})
	}
}

func TestFixture_AllowedUndecidedRow_IsIdle(t *testing.T) {
	f, rec := checkedFixture(t, nil)
	f.Exec(insertUndecided)
	f.AllowUndecided(7)
	f.WaitIdle()
	f.checkEnd()
	if rec.Failed() {
		t.Errorf("errors %q", rec.errs)
	}
}
