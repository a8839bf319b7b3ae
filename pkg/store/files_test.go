package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	adapterrows "arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func wanted(m *msg.Message) { m.FilesWanted = true }

func TestWantedFiles(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if rows := storetest.Must(adapterrows.WantedFiles(t.Context(), s.Reader, "telegram", 10))(t); rows != nil {
		t.Errorf("in an empty table: %v", rows)
	}
	storetest.Inbound(t, s, storetest.Chat, "without files")
	var want []int64
	for _, jid := range []string{storetest.Chat, "telegram:-2", storetest.Chat} {
		want = append(want, storetest.WithFiles(t, s, jid, wanted).ID)
	}
	storetest.WithFiles(t, s, storetest.Chat)
	storetest.WithFiles(t, s, "telegrams:1", wanted)
	storetest.WithFiles(t, s, "web:telegram:1", wanted)
	storetest.WithFiles(t, s, storetest.Chat, wanted, func(m *msg.Message) { m.PendingFiles = 0 })
	storetest.WithFiles(t, s, storetest.Chat, wanted, func(m *msg.Message) { m.Direction = msg.Out })
	for _, limit := range []int{10, 2} {
		var got []int64
		for _, m := range storetest.Must(adapterrows.WantedFiles(t.Context(), s.Reader, "telegram", limit))(t) {
			got = append(got, m.ID)
			if len(m.Attachments) != 2 || m.Attachments[0].Ref != "f1" {
				t.Errorf("row %+v", m)
			}
		}
		if !slices.Equal(got, want[:min(limit, 3)]) {
			t.Errorf("rows %d of %d, at most %d", got, want, limit)
		}
	}
}

func TestPutFiles(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 10)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	m := storetest.WithFiles(t, s, storetest.Chat)
	if got := storetest.Receive(t, "the row's poke", pokes); got != "gated" {
		t.Errorf("poked %s", got)
	}
	files := []msg.Attachment{{Path: "media/202611/1-0-a", Name: "a", MIME: "text/plain", Size: 4}, {Name: "b", Error: "too large"}}
	put := func() error {
		return s.Write(t.Context(), func(tx *store.Tx) error { return tx.PutFiles(m.ID, files) })
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	if got := storetest.Receive(t, "the files' poke", pokes); got != "gated" {
		t.Errorf("poked %s", got)
	}
	want := *m
	want.PendingFiles, want.Attachments = 0, files
	got := storetest.Must(s.Message(t.Context(), m.ID))(t)
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	files = nil
	if err := put(); !errors.Is(err, store.ErrStale) {
		t.Errorf("recorded again: %v", err)
	}
	if diff := cmp.Diff(got, storetest.Must(s.Message(t.Context(), m.ID))(t)); diff != "" {
		t.Errorf("changed (-before +after):\n%s", diff)
	}
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.PutFiles(1000, nil) }); !errors.Is(err, store.ErrStale) {
		t.Errorf("of no row: %v", err)
	}
	select {
	case daemon := <-pokes:
		t.Errorf("poked %s although nothing changed", daemon)
	default:
	}
}
