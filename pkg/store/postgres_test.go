package store_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// onServer skips a test that is about a server.
func onServer(t testing.TB) {
	t.Helper()
	if storetest.Server() == "" {
		t.Skip("needs a Postgres server: make test DB=postgres")
	}
}

// withParameter is a URL with one more parameter.
func withParameter(t testing.TB, database, name, value string) string {
	t.Helper()
	u := storetest.Must(url.Parse(database))(t)
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// proxy starts a proxy for a database.
func proxy(t testing.TB, database string) *storetest.Proxy {
	t.Helper()
	p := storetest.Must(storetest.NewProxy(database))(t)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// A process that is stopped within a transaction loses it; another one waits no longer than that for the lock.
func TestPostgres_HolderStopped_OthersWriteOn(t *testing.T) {
	onServer(t)
	database := storetest.Path(t)
	holder, _, _ := daemon(t, roleStopper, withParameter(t, database, "idle_in_transaction_session_timeout", "300"))
	storetest.Eventually(t, "the process to stop itself", func() bool { return stopped(t, holder.Process.Pid) })

	s := storetest.OpenAt(t, database, nil)
	storetest.Write(t, s, puts("meanwhile", nil))

	if err := holder.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := holder.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, s); !slices.Equal(got, []string{"meanwhile", "of the stopped process"}) {
		t.Errorf("stored %v", got)
	}
}

// The connection is lost around the COMMIT: what Write returns is what the database has.
func TestPostgres_ConnectionLostAtCommit_ResultIsKnown(t *testing.T) {
	t.Parallel()
	onServer(t)
	for _, tt := range []struct {
		name   string
		lose   func(storetest.Link)
		stored bool
	}{
		{"before the server has it", storetest.Link.Cut, false},
		{"after the server has it", storetest.Link.CutClient, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			database := storetest.Path(t)
			p := proxy(t, database)
			s := storetest.OpenAt(t, p.URL(), nil)
			storetest.Write(t, s, puts("before", nil))
			p.OnCommit(func(link storetest.Link) {
				p.OnCommit(nil)
				tt.lose(link)
			})
			err := s.Write(t.Context(), puts("in doubt", nil))
			if (err == nil) != tt.stored || err != nil && !errors.Is(err, store.ErrUnreachable) {
				t.Errorf("error %v", err)
			}
			storetest.Write(t, s, puts("after", nil))
			want := []string{"before", "after"}
			if tt.stored {
				want = []string{"before", "in doubt", "after"}
			}
			if got := contents(t, s); !slices.Equal(got, want) {
				t.Errorf("stored %v, want %v", got, want)
			}
		})
	}
}

// The server does not notice that the connection is lost, and gets the COMMIT of a transaction that another connection asks
// about: the answer waits for the transaction's end.
func TestPostgres_CommitArrivesLate_IsAwaited(t *testing.T) {
	t.Parallel()
	onServer(t)
	p := proxy(t, storetest.Path(t))
	s := storetest.OpenAt(t, p.URL(), nil)
	storetest.Write(t, s, puts("before", nil))
	p.OnCommit(func(link storetest.Link) {
		p.OnCommit(nil)
		link.CutClient()
		<-time.After(500 * time.Millisecond)
	})
	begun := time.Now()
	storetest.Write(t, s, puts("late", nil))
	if took := time.Since(begun); took < 500*time.Millisecond {
		t.Errorf("answered after %s", took)
	}
	if got := contents(t, s); !slices.Equal(got, []string{"before", "late"}) {
		t.Errorf("stored %v", got)
	}
}

// A whole transaction reaches the server after its write has failed: it must not be stored then.
func TestPostgres_TransactionArrivesTooLate_IsRefused(t *testing.T) {
	t.Parallel()
	onServer(t)
	database := storetest.Path(t)
	p := proxy(t, database)
	s := storetest.OpenAt(t, p.URL(), nil)
	put := func(value string) error {
		return s.Write(t.Context(), func(tx *store.Tx) error { return tx.PutCursor("test", "key", value) })
	}
	if err := put("before"); err != nil {
		t.Fatal(err)
	}
	answered, passedOn := make(chan struct{}), make(chan struct{})
	p.OnCommit(func(link storetest.Link) {
		p.OnCommit(nil)
		link.CutClient()
		<-answered
		close(passedOn)
	})
	err := put("too late")
	close(answered)
	if !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("error %v", err)
	}
	<-passedOn
	other := storetest.OpenAt(t, database, nil)
	for range 10 { // while the server gets it
		if got := storetest.Must(other.DaemonCursor(t.Context(), "test", "key"))(t); got != "before" {
			t.Fatalf("stored %q", got)
		}
		<-time.After(20 * time.Millisecond)
	}
	if err := put("after"); err != nil {
		t.Error(err)
	}
}

// While the server cannot be reached nothing is guessed; a store that closes meanwhile says that it does not know.
func TestPostgres_ClosedWhileCommitIsInDoubt_SaysSo(t *testing.T) {
	t.Parallel()
	onServer(t)
	p := proxy(t, storetest.Path(t))
	s := storetest.Must(store.Open(t.Context(), store.Options{Path: p.URL()}))(t)
	storetest.Write(t, s, puts("before", nil))
	p.OnCommit(func(storetest.Link) { p.Cut() })
	done := make(chan error, 1)
	go func() { done <- s.Write(t.Context(), puts("in doubt", nil)) }()
	storetest.Eventually(t, "the write to begin", func() bool { return p.WasCut() })
	go func() { _ = s.Close() }()
	if err := storetest.Receive(t, "the write", done); err == nil || !strings.Contains(err.Error(), "not known whether") {
		t.Errorf("error %v", err)
	}
}

// Of several servers the one that takes writes is used, for reading, too.
func TestPostgres_SeveralServers_TheOneThatTakesWrites(t *testing.T) {
	t.Parallel()
	onServer(t)
	database := storetest.Path(t)
	standby, primary := proxy(t, database), proxy(t, database)
	standby.Cut()
	one, two := storetest.Must(url.Parse(standby.URL()))(t), storetest.Must(url.Parse(primary.URL()))(t)
	one.Host += "," + two.Host
	for _, attrs := range []string{"", "any", "read-write", "primary"} {
		name := one.String()
		if attrs != "" {
			name = withParameter(t, name, "target_session_attrs", attrs)
		}
		s := storetest.OpenAt(t, name, nil)
		storetest.Write(t, s, puts("one", nil))
		if got := contents(t, s); len(got) == 0 {
			t.Errorf("%q: nothing read", attrs)
		}
	}
}

// A process that ends removes its mark, and one that starts those of others that did not, a week later.
func TestPostgres_Marks_AreRemoved(t *testing.T) {
	t.Parallel()
	onServer(t)
	database := storetest.Path(t)
	storetest.Exec(t, database, `INSERT INTO counters (name, value) VALUES ('writer/0001000000000/OLD', 7)`)
	s := storetest.OpenAt(t, database, nil)
	other := storetest.Must(store.Open(t.Context(), store.Options{Path: database}))(t)
	storetest.Stored(t, other, &msg.Message{ChatJID: "a:1", Direction: msg.In})
	marks := func() int64 {
		return storetest.Value[int64](t, s, `SELECT count(*) FROM counters WHERE name LIKE 'writer/%'`)
	}
	if n := marks(); n != 2 {
		t.Errorf("%d marks of two processes", n)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if n := marks(); n != 1 {
		t.Errorf("%d marks of one process", n)
	}
}
