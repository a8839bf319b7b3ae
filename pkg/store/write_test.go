package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// puts returns a write that inserts one row and returns end.
func puts(content string, end error) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(&msg.Message{ChatJID: "a:1", Direction: msg.In, Content: content}); err != nil {
			return err
		}
		return end
	}
}

// contents lists the content of the rows of a:1.
func contents(t *testing.T, s *store.Store) (all []string) {
	t.Helper()
	for _, m := range storetest.Must(gatedtest.Undecided(t.Context(), s.Reader, "a:1", 0, 10_000))(t) {
		all = append(all, m.Content)
	}
	return all
}

func TestWriteAll_OneFails_OthersCommit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	sqlFails := func(tx *store.Tx) error {
		if err := puts("before the failure", nil)(tx); err != nil {
			return err
		}
		return tx.Exec(`INSERT INTO messages (chat_jid, direction, timestamp, received_at) VALUES ('a:1', 'sideways', 1, 1)`)
	}
	// A write cannot ignore the error of a statement.
	sqlFailsUnnoticed := func(tx *store.Tx) error {
		_ = sqlFails(tx)
		return puts("four", nil)(tx)
	}
	errs := s.WriteAll(t.Context(),
		puts("one", nil), puts("two", store.ErrStale), sqlFails, puts("three", nil), sqlFailsUnnoticed)
	if errs[0] != nil || errs[3] != nil || errs[4] == nil {
		t.Fatal(errs)
	}
	if !errors.Is(errs[1], store.ErrStale) || errs[2] == nil || !strings.Contains(strings.ToUpper(errs[2].Error()), "CHECK") {
		t.Errorf("errors: %v, %v", errs[1], errs[2])
	}
	want := []string{"one", "three"}
	if diff := cmp.Diff(want, contents(t, s)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestWriteAll_FirstFails_OthersCommit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	errs := s.WriteAll(t.Context(), puts("one", store.ErrStale), puts("two", nil), puts("three", store.ErrStale), puts("four", nil))
	if !errors.Is(errs[0], store.ErrStale) || errs[1] != nil || !errors.Is(errs[2], store.ErrStale) || errs[3] != nil {
		t.Errorf("errors: %v", errs)
	}
	if err := s.Write(t.Context(), puts("five", store.ErrStale)); !errors.Is(err, store.ErrStale) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"two", "four"}, contents(t, s)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestWrite_RowsAreVisibleInside_AndOutsideAfterCommit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := puts("one", nil)(tx); err != nil {
			return err
		}
		inside, err := gatedtest.UndecidedChats(t.Context(), tx.Reader)
		outside := storetest.Must(gatedtest.UndecidedChats(t.Context(), s.Reader))(t)
		if len(inside) != 1 || len(outside) != 0 {
			t.Errorf("inside %v, outside %v", inside, outside)
		}
		return err
	})
	if got := contents(t, s); len(got) != 1 {
		t.Errorf("after the commit: %v", got)
	}
}

// TestWrite_ManyCallers_ShareCommits blocks the writer until many callers have queued.
func TestWrite_ManyCallers_ShareCommits(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	commits := storetest.Must(s.CountCommits())(t)
	const callers = 50
	done := make(chan error, callers+1)
	hold, held := make(chan struct{}), make(chan struct{})
	go func() {
		done <- s.Write(context.Background(), func(tx *store.Tx) error {
			close(held)
			<-hold
			return puts("first", nil)(tx)
		})
	}()
	storetest.Receive(t, "the first write", held)
	for i := range callers {
		go func() { done <- s.Write(context.Background(), puts(fmt.Sprint(i), nil)) }()
	}
	storetest.Eventually(t, "the callers to queue", func() bool { return s.Queued() == callers })
	close(hold)
	for range callers + 1 {
		if err := storetest.Receive(t, "a write", done); err != nil {
			t.Error(err)
		}
	}
	if n := commits.Load(); n != 2 {
		t.Errorf("%d commits for one write and %d queued ones, want 2", n, callers)
	}
	if got := contents(t, s); len(got) != callers+1 {
		t.Errorf("%d rows", len(got))
	}
}

func TestWriteAll_RunsInOrder(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	var want []string
	var fns []func(*store.Tx) error
	for i := range 600 {
		want = append(want, fmt.Sprint(i))
		fns = append(fns, puts(want[i], nil))
	}
	for _, err := range s.WriteAll(t.Context(), fns...) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, contents(t, s)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if errs := s.WriteAll(t.Context()); len(errs) != 0 {
		t.Errorf("nothing to write: %v", errs)
	}
}

func TestPoke_ComesAfterTheCommit(t *testing.T) {
	t.Parallel()
	type poke struct {
		daemon  string
		visible int // rows that others can read when it comes
	}
	pokes := make(chan poke, 10)
	path := storetest.Path(t)
	reader := storetest.OpenAt(t, path, nil)
	s := storetest.OpenAt(t, path, func(daemon string) {
		rows, err := gatedtest.Undecided(t.Context(), reader.Reader, "a:1", 0, 10)
		if err != nil {
			t.Error(err)
		}
		pokes <- poke{daemon, len(rows)}
	})
	pokesOnly := func(daemons ...string) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			for _, d := range daemons {
				tx.Poke(d)
			}
			return nil
		}
	}
	failing := func(tx *store.Tx) error {
		tx.Poke("dashd")
		return puts("undone", store.ErrStale)(tx)
	}
	s.WriteAll(t.Context(), puts("one", nil), failing, puts("two", nil), pokesOnly("", "gated", "routd"))
	want := []poke{{"gated", 2}, {"routd", 2}}
	for _, w := range want {
		if got := storetest.Receive(t, "a poke", pokes); got != w {
			t.Errorf("poke %+v, want %+v", got, w)
		}
	}
	storetest.Write(t, s, pokesOnly("the end"))
	if got := storetest.Receive(t, "a poke", pokes); got.daemon != "the end" {
		t.Errorf("poke %+v for a write that failed or poked already", got)
	}
}

func TestPutMessage_PokesTheDaemonThatActsOnIt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		row  msg.Message
		want string
	}{
		{"inbound", msg.Message{ChatJID: "slack:C1", Direction: msg.In}, "gated"},
		{"outbound telegram", msg.Message{ChatJID: "telegram:1", Direction: msg.Out, OutState: msg.OutQueued}, "teled"},
		{"outbound web", msg.Message{ChatJID: "web:acme", Direction: msg.Out, OutState: msg.OutQueued}, "dashd"},
		{"outbound of a foreign platform", msg.Message{ChatJID: "irc:1", Direction: msg.Out, OutState: msg.OutQueued}, ""},
		{"sent already", msg.Message{ChatJID: "telegram:1", Direction: msg.Out, OutState: msg.OutSent}, ""},
		{"stored already", msg.Message{ChatJID: "slack:C1", PlatformID: "twice", Direction: msg.In}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pokes := make(chan string, 2)
			s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
			if tt.row.PlatformID != "" {
				row := tt.row
				storetest.Stored(t, s, &row)
				storetest.Receive(t, "the poke for the first", pokes)
			}
			storetest.Write(t, s, func(tx *store.Tx) error {
				_, _, err := tx.PutMessage(&tt.row)
				return err
			})
			storetest.Write(t, s, func(tx *store.Tx) error { tx.Poke("the end"); return nil })
			got := storetest.Receive(t, "a poke", pokes)
			if got == "the end" {
				got = ""
			}
			if got != tt.want {
				t.Errorf("poked %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWrite_ContextEnded_IsNotQueued(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if err := s.Write(ctx, puts("never", nil)); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
	}
	if got := contents(t, s); got != nil {
		t.Errorf("stored %v", got)
	}
}

// TestWrite_ContextEndsWhileQueued_Commits cancels a caller whose write is queued.
func TestWrite_ContextEndsWhileQueued_Commits(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	hold, held := make(chan struct{}), make(chan struct{})
	go func() {
		done <- s.Write(context.Background(), func(*store.Tx) error { close(held); <-hold; return nil })
	}()
	storetest.Receive(t, "the first write", held)
	go func() { done <- s.Write(ctx, puts("kept", nil)) }()
	storetest.Eventually(t, "the second write to queue", func() bool { return s.Queued() == 1 })
	cancel()
	close(hold)
	for range 2 {
		if err := storetest.Receive(t, "a write", done); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"kept"}, contents(t, s)); diff != "" {
		t.Error(diff)
	}
}

// Not parallel: the goroutines of other tests would count as leaks.
func TestClose_FinishesQueuedWrites(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	path := storetest.Path(t)
	s := storetest.Must(store.Open(t.Context(), store.Options{Path: path}))(t)
	done := make(chan error, 10)
	hold, held := make(chan struct{}), make(chan struct{})
	go func() {
		done <- s.Write(context.Background(), func(*store.Tx) error { close(held); <-hold; return nil })
	}()
	storetest.Receive(t, "the first write", held)
	for i := range 9 {
		go func() { done <- s.Write(context.Background(), puts(fmt.Sprint(i), nil)) }()
	}
	storetest.Eventually(t, "the writes to queue", func() bool { return s.Queued() == 9 })
	closed := make(chan error, 2)
	go func() { closed <- s.Close() }()
	close(hold)
	for range 10 {
		if err := storetest.Receive(t, "a write", done); err != nil {
			t.Error(err)
		}
	}
	if err := storetest.Receive(t, "Close", closed); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if err := s.Write(t.Context(), puts("late", nil)); !errors.Is(err, store.ErrClosed) {
		t.Errorf("write after Close: %v", err)
	}
	again := storetest.Must(store.Open(t.Context(), store.Options{Path: path}))(t)
	defer again.Close()
	if got := contents(t, again); len(got) != 9 {
		t.Errorf("stored %v", got)
	}
}
