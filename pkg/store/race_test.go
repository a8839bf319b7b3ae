package store_test

import (
	"errors"
	"io"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"golang.org/x/sync/errgroup"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// Processes store rows while a reader follows them by its cursor and two stores try to decide each: the reader skips none, and
// each row has one disposition.
func TestManyProcesses_ReaderByCursor_SkipsNoRow(t *testing.T) {
	const processes, rows = 3, 300
	path := storetest.Path(t)
	var cmds []*exec.Cmd
	var stdins []io.WriteCloser
	for range processes {
		cmd, stdin, _ := daemon(t, roleWriter, path)
		cmds, stdins = append(cmds, cmd), append(stdins, stdin)
	}
	reader := storetest.OpenAt(t, path, nil)
	seen := follow(t, reader, rows)
	for i, cmd := range cmds {
		_ = stdins[i].Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	seen = append(seen, storetest.Must(gatedtest.Undecided(t.Context(), reader.Reader, "load:1", seen[len(seen)-1].ID, 1_000_000))(t)...)
	all := storetest.Must(gatedtest.Undecided(t.Context(), reader.Reader, "load:1", 0, 1_000_000))(t)
	if len(seen) != len(all) {
		t.Fatalf("the reader saw %d of %d rows", len(seen), len(all))
	}
	decideTwice(t, []*store.Store{reader, storetest.OpenAt(t, path, nil)}, all)
}

// follow reads rows after its cursor until it has so many.
func follow(t *testing.T, s *store.Store, rows int) (seen []*msg.Message) {
	t.Helper()
	cursor, deadline := int64(0), time.Now().Add(storetest.MaxWait)
	for len(seen) < rows {
		if time.Now().After(deadline) {
			t.Fatalf("%d rows after %s", len(seen), storetest.MaxWait)
		}
		page := storetest.Must(gatedtest.Undecided(t.Context(), s.Reader, "load:1", cursor, 1000))(t)
		if len(page) > 0 {
			cursor = page[len(page)-1].ID
		}
		seen = append(seen, page...)
	}
	return seen
}

// decideTwice lets each store decide each row, and checks that one has and that the decisions are numbered without a gap.
func decideTwice(t *testing.T, stores []*store.Store, rows []*msg.Message) {
	t.Helper()
	rows = rows[:min(len(rows), 100)]
	var decided, stale atomic.Int64
	var group errgroup.Group
	for _, s := range stores {
		group.Go(func() error {
			for _, row := range rows {
				err := s.Write(t.Context(), func(tx *store.Tx) error {
					return tx.Decide(row.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute}, 1)
				})
				switch {
				case err == nil:
					decided.Add(1)
				case errors.Is(err, store.ErrStale):
					stale.Add(1)
				default:
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := int64(len(rows)); decided.Load() != n || stale.Load() != n {
		t.Errorf("%d decided, %d refused, of %d rows", decided.Load(), stale.Load(), n)
	}
	var numbers []int64
	for _, row := range rows {
		numbers = append(numbers, storetest.Must(stores[0].Message(t.Context(), row.ID))(t).DecisionSeq)
	}
	slices.Sort(numbers)
	for i, number := range numbers {
		if number != int64(i+1) {
			t.Fatalf("decisions %v", numbers)
		}
	}
}
