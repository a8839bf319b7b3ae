package store_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// During a write, those of other scopes run and those that share a key wait, in this process and in others.
func TestScope_OnServer_ExcludesTheSameKeysAlone(t *testing.T) {
	t.Parallel()
	onServer(t)
	path := storetest.Path(t)
	one, other := storetest.OpenAt(t, path, nil), storetest.OpenAt(t, path, nil)
	for name, tc := range map[string]struct {
		held, wanted store.Scope
		waits        bool
	}{
		"other keys":           {store.Scope{"a", "b"}, store.Scope{"c"}, false},
		"a common key":         {store.Scope{"a", "b"}, store.Scope{"c", "b"}, true},
		"everything":           {store.Scope{"a"}, nil, true},
		"beside everything":    {nil, store.Scope{"a"}, true},
		"none":                 {store.Scope{}, store.Scope{}, false},
		"a shared key":         {store.Scope{"a", store.Shared("s")}, store.Scope{"b", store.Shared("s")}, false},
		"a shared key, alone":  {store.Scope{"a", store.Shared("s")}, store.Scope{"b", store.Late("s")}, true},
		"a late key and a key": {store.Scope{"a", store.Late("s")}, store.Scope{"s"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inside, leave := make(chan struct{}), make(chan struct{})
			var group errgroup.Group
			group.Go(func() error {
				return one.WriteIn(t.Context(), tc.held, func(tx *store.Tx) error {
					_, err := tx.Find([]any{new(int)}, `SELECT 1`) // which begins the transaction
					close(inside)
					<-leave
					return err
				})
			})
			<-inside
			wrote := make(chan error, 1)
			go func() { wrote <- other.WriteIn(t.Context(), tc.wanted, func(*store.Tx) error { return nil }) }()
			var err error
			select {
			case err = <-wrote:
				if tc.waits {
					t.Error("it did not wait")
				}
			case <-time.After(map[bool]time.Duration{true: 200 * time.Millisecond, false: storetest.MaxWait}[tc.waits]):
				if !tc.waits {
					t.Error("it waited")
				}
				close(leave)
				leave = nil
				err = <-wrote
			}
			if leave != nil {
				close(leave)
			}
			if werr := group.Wait(); err != nil || werr != nil {
				t.Error(err, werr)
			}
		})
	}
}

// A write that turns out to touch more is undone and run again, beside none.
func TestScope_TouchesMore_RunsAgainAlone(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	runs := 0
	err := s.WriteIn(t.Context(), store.Scope{"telegram:1"}, func(tx *store.Tx) error {
		runs++
		for _, jid := range []string{"telegram:1", "telegram:2"} {
			if _, _, err := tx.PutMessage(&msg.Message{ChatJID: jid, Direction: msg.In}); err != nil {
				return err
			}
		}
		return nil
	})
	if rows := storetest.Value[int64](t, s, `SELECT count(*) FROM messages`); err != nil || runs != 2 || rows != 2 {
		t.Errorf("%d runs, %d rows, %v", runs, rows, err)
	}
}

// Several processes store and decide rows of many chats at once, some of them taken back; readers with floors see each row
// once, and the rows of a chat in the order of their ids.
func TestFloor_ManyWriters_EachRowSeenOnceInItsChatsOrder(t *testing.T) {
	t.Parallel()
	const writers, chats, each = 6, 5, 60
	path := storetest.Path(t)
	reader := storetest.OpenAt(t, path, nil)
	floor := storetest.Must(reader.FloorAt(t.Context()))(t)
	var group errgroup.Group
	var stored, left atomic.Int64
	left.Store(writers)
	for w := range writers {
		st := storetest.OpenAt(t, path, nil)
		group.Go(func() error {
			defer left.Add(-1)
			for i := range each {
				jid := fmt.Sprint("telegram:", (w+i)%chats)
				err := st.WriteIn(t.Context(), store.Scope{jid}, func(tx *store.Tx) error {
					m := &msg.Message{ChatJID: jid, Direction: msg.In, Content: fmt.Sprint(w, i)}
					_, _, err := tx.PutMessage(m)
					if err == nil && i%7 == 0 {
						err = store.ErrStale // its id is used up
					}
					return err
				})
				if err == nil {
					stored.Add(1)
				}
			}
			return nil
		})
	}
	seen, last := map[int64]bool{}, map[string]int64{}
	for done := false; !done || int64(len(seen)) < stored.Load(); {
		done = left.Load() == 0
		before := len(seen)
		if err := floor.Ask(t.Context(), reader.Reader); err != nil {
			t.Fatal(err)
		}
		var id int64
		err := reader.Each(t.Context(), func(scan store.Scan) (bool, error) {
			var jid string
			if err := scan(&id, &jid); err != nil || !floor.See(id) {
				return true, err
			}
			if seen[id] || id < last[jid] {
				t.Errorf("row %d of %s after row %d", id, jid, last[jid])
			}
			seen[id], last[jid] = true, id
			return true, nil
		}, `SELECT id, chat_jid FROM messages WHERE id > ? ORDER BY id LIMIT ?+0`, floor.At, 7+floor.Seen())
		if err != nil {
			t.Fatal(err)
		}
		floor.Raise(reader.Reader, id)
		if done && len(seen) == before {
			break
		}
	}
	if err := group.Wait(); err != nil || int64(len(seen)) != stored.Load() {
		t.Errorf("%d of %d rows seen, %v", len(seen), stored.Load(), err)
	}
}

// A row that is decided already undoes the whole write, also where the server learns of it with the COMMIT.
func TestExpect_RowUnchanged_NothingIsStored(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	row := storetest.Inbound(t, s, "telegram:1", "1")
	d := store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute, ReceivedAt: 10}
	storetest.Decide(t, s, row.ID, d)
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(&msg.Message{ChatJID: "telegram:1", Direction: msg.In})
		return errors.Join(err, tx.Decide(row.ID, d, 20))
	})
	if rows := storetest.Value[int64](t, s, `SELECT count(*) FROM messages`); !errors.Is(err, store.ErrStale) || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
}
