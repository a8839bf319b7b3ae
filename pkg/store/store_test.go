package store_test

import (
	"context"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestPutMessageOnce(t *testing.T) {
	s := storetest.Open(t)
	m := msg.Message{ChatJID: "telegram:1", PlatformID: "7", Direction: msg.In, Content: "hi", Timestamp: 1, ReceivedAt: 2}
	id, fresh, err := s.PutMessage(&m)
	if err != nil || !fresh || id != 1 {
		t.Fatalf("first: %d %v %v", id, fresh, err)
	}
	again := m
	again.Content = "changed"
	id2, fresh, err := s.PutMessage(&again)
	if err != nil || fresh || id2 != id {
		t.Fatalf("again: %d %v %v", id2, fresh, err)
	}
	got, err := s.Message(id)
	if err != nil || got.Content != "hi" {
		t.Fatalf("stored %+v %v", got, err)
	}
}

func TestGroupCommitSavepoints(t *testing.T) {
	s := storetest.Open(t)
	put := func(content string, fail error) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			if _, _, err := tx.PutMessage(&msg.Message{ChatJID: "a:1", Direction: msg.In, Content: content}); err != nil {
				return err
			}
			return fail
		}
	}
	errs := s.WriteAll(context.Background(), put("one", nil), put("two", store.ErrStale), put("three", nil))
	if errs[0] != nil || errs[1] != store.ErrStale || errs[2] != nil {
		t.Fatal(errs)
	}
	rows, err := s.Undecided("a:1", 0, 10)
	if err != nil || len(rows) != 2 || rows[0].Content != "one" || rows[1].Content != "three" {
		t.Fatalf("%v %v", rows, err)
	}
}
