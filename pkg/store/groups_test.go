package store_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestGroups(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	eng := msg.Group{Folder: "acme/eng", Name: "Eng", CreatedAt: 5, Config: json.RawMessage(`{"observe":"none"}`)}
	acme := msg.Group{Folder: "acme", CreatedAt: 6, Config: json.RawMessage(`{}`)}
	put := func(g msg.Group) (fresh bool) {
		t.Helper()
		write(t, s, func(tx *store.Tx) (err error) {
			fresh, err = tx.PutGroup(&g)
			return err
		})
		return fresh
	}
	if !put(eng) || !put(acme) {
		t.Error("new groups are not fresh")
	}
	if put(msg.Group{Folder: "acme", Name: "other", Config: json.RawMessage(`{}`)}) {
		t.Error("registered twice")
	}
	groups, err := s.Groups(t.Context())
	if diff := cmp.Diff([]msg.Group{acme, eng}, groups); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}

	changed := msg.Group{Folder: "acme", Name: "Acme", Config: json.RawMessage(`{"model":"x"}`)}
	write(t, s, func(tx *store.Tx) error {
		for folder, want := range map[string]bool{"acme/eng": true, "absent": false} {
			if found, err := tx.DeleteGroup(folder); found != want || err != nil {
				t.Errorf("delete %s: %v %v", folder, found, err)
			}
		}
		if found, err := tx.UpdateGroup(&changed); !found || err != nil {
			t.Errorf("update: %v %v", found, err)
		}
		found, err := tx.UpdateGroup(&msg.Group{Folder: "absent", Config: json.RawMessage(`{}`)})
		if found {
			t.Error("updated a group that does not exist")
		}
		return err
	})
	changed.CreatedAt = acme.CreatedAt
	got, err := s.Group(t.Context(), "acme")
	if diff := cmp.Diff(&changed, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := s.Group(t.Context(), "acme/eng"); got != nil || err != nil {
		t.Errorf("deleted group: %+v %v", got, err)
	}
}

func TestFoldersEver_RegisteredAndRemoved(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for _, f := range []string{"acme", "acme/eng"} {
		write(t, s, func(tx *store.Tx) error {
			_, err := tx.PutGroup(&msg.Group{Folder: f, Config: json.RawMessage(`{}`)})
			return err
		})
	}
	turn := queued(t, s, func(turn *msg.Turn) { turn.Folder = "acme/gone" })
	frame := answer(begun(t, s, turn), turn, "ok")
	frame.SessionID = "s"
	reply(t, s, frame, 300)
	queued(t, s, func(turn *msg.Turn) { turn.Folder = "acme/new" })
	if diff := cmp.Diff([]string{"acme", "acme/eng", "acme/gone", "acme/new"}, must(s.FoldersEver(t.Context()))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for folder, want := range map[string]bool{"acme": true, "acme/gone": true, "acme/new": false, "acme/other": false} {
		if used := must(s.FolderUsed(t.Context(), folder))(t); used != want {
			t.Errorf("%s used: %t", folder, used)
		}
	}
}
