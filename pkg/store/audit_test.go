package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestAudit_Filters_NewestFirstInPages(t *testing.T) {
	s := storetest.Open(t)
	write(t, s, func(tx *store.Tx) error {
		for i := range 6 {
			who, what := []string{"cli", "web:ada"}[i%2], []string{"add route", "approve", "change route"}[i%3]
			if err := tx.PutAudit(who, what, fmt.Sprint(i+1), int64(i)); err != nil {
				return err
			}
		}
		return nil
	})
	for name, tt := range map[string]struct {
		query store.AuditQuery
		want  []string
	}{
		"all":           {store.AuditQuery{Limit: 10}, []string{"6", "5", "4", "3", "2", "1"}},
		"a page":        {store.AuditQuery{Limit: 2}, []string{"6", "5"}},
		"the next page": {store.AuditQuery{Limit: 2, Before: 5}, []string{"4", "3"}},
		"by who":        {store.AuditQuery{Who: "cli", Limit: 10}, []string{"5", "3", "1"}},
		"by what":       {store.AuditQuery{What: "approve", Limit: 10, Before: 5}, []string{"2"}},
		"by both":       {store.AuditQuery{Who: "cli", What: "approve", Limit: 10}, []string{"5"}},
		"by neither":    {store.AuditQuery{Who: "web:bob", Limit: 10}, nil},
	} {
		rows, err := s.Audit(t.Context(), tt.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, r.Detail)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	rows, err := s.Audit(t.Context(), store.AuditQuery{Limit: 1})
	if diff := cmp.Diff([]store.AuditRow{{ID: 6, At: 5, Who: "web:ada", What: "change route", Detail: "6"}}, rows); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for limit, want := range map[int][]string{10: {"add route", "approve", "change route"}, 2: {"add route", "approve"}} {
		if got, err := s.AuditWhats(t.Context(), limit); err != nil || !slices.Equal(got, want) {
			t.Errorf("kinds: %v, %v, want %v", got, err, want)
		}
	}
}

func TestAuditWhats_NoChange_None(t *testing.T) {
	s := storetest.Open(t)
	if got, err := s.AuditWhats(t.Context(), 5); err != nil || len(got) != 0 {
		t.Errorf("kinds: %v, %v", got, err)
	}
}

func TestNewestInbound_Rows_AsRoutesSeeThem(t *testing.T) {
	s := storetest.Open(t)
	write(t, s, func(tx *store.Tx) error {
		if err := tx.PutChat("telegram:-1", msg.ChatGroup, "Dev", 1); err != nil {
			return err
		}
		for _, m := range []*msg.Message{
			{ChatJID: "telegram:-1", PlatformID: "7", Direction: msg.In, Verb: msg.VerbMention, Sender: "telegram:42", SenderName: "Ada", ThreadID: "t", Topic: "#x", Content: "hello", Timestamp: 5, ReceivedAt: 6},
			{ChatJID: "slack:C1", Direction: msg.In, Verb: msg.VerbMessage, Sender: "agent:main", Timestamp: 5, ReceivedAt: 7, ForwardedFrom: &msg.ReturnAddress{Kind: msg.Delegation}},
			{ChatJID: "slack:C1", Direction: msg.In, Verb: msg.VerbMessage, Sender: "agent:main", Timestamp: 5, ReceivedAt: 8, ForwardedFrom: &msg.ReturnAddress{Kind: msg.Injection}},
			{ChatJID: "slack:C1", Direction: msg.In, Kind: msg.KindEdit, Verb: msg.VerbEdit, TargetID: "3", Sender: "slack:U1", Timestamp: 5, ReceivedAt: 9},
		} {
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		return tx.Decide(1, store.Decision{Disposition: msg.Routed, RoutedTo: "main", Reason: msg.ReasonRoute, Topic: "#x", ThreadID: "t"}, 9)
	})
	got, err := s.NewestInbound(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	want := []store.Inbound{
		{ID: 4, ChatJID: "slack:C1", Sender: "slack:U1", Verb: "edit", ReceivedAt: 9, Change: true},
		{ID: 3, ChatJID: "slack:C1", Sender: "agent:main", Verb: "message", ReceivedAt: 8},
		{ID: 2, ChatJID: "slack:C1", Sender: "agent:main", Verb: "message", ReceivedAt: 7, Own: true},
		{ID: 1, ChatJID: "telegram:-1", Kind: "group", Title: "Dev", Topic: "#x", ThreadID: "t", Sender: "telegram:42", SenderName: "Ada", Verb: "mention",
			PlatformID: "7", ReceivedAt: 6, Reason: "route", Folder: "main", Content: "hello"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := s.NewestInbound(t.Context(), 1); err != nil || len(got) != 1 || got[0].ID != 4 {
		t.Errorf("the newest: %v, %v", got, err)
	}
	chats, err := s.NewestChats(t.Context(), 5)
	if diff := cmp.Diff([]store.ChatTitle{{JID: "telegram:-1", Kind: "group", Title: "Dev"}}, chats); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestDecidedInbound_NewestDecided_AndWhenTheTableChanged(t *testing.T) {
	s := storetest.Open(t)
	var want []int64
	for i := range 3 {
		m := inbound(t, s, "telegram:1", fmt.Sprint("text ", i))
		write(t, s, func(tx *store.Tx) error {
			return tx.Decide(m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute}, int64(100*(i+1)))
		})
		want = append([]int64{m.ID}, want...)
	}
	inbound(t, s, "telegram:1", "not decided")
	write(t, s, func(tx *store.Tx) error {
		if err := tx.PutAudit("cli", "change group", "main", 7); err != nil {
			return err
		}
		return tx.PutAudit("cli", "approve", "main", 9)
	})
	for name, tc := range map[string]struct {
		since int64
		limit int
		want  []int64
	}{"all": {0, 10, want}, "since": {200, 10, want[:2]}, "limit": {0, 1, want[:1]}} {
		rows, err := s.DecidedInbound(t.Context(), tc.since, tc.limit)
		var got []int64
		for _, m := range rows {
			got = append(got, m.ID)
		}
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tc.want)
		}
	}
	if at, err := s.TableChangedAt(t.Context()); err != nil || at != 7 {
		t.Errorf("changed at %d, %v", at, err)
	}
}
