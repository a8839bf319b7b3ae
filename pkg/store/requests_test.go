package store_test

import (
	"strings"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// ask stores a pending request of a chat.
func ask(t testing.TB, s *store.Store, code, chatJID string, at int64) *store.Request {
	t.Helper()
	r := &store.Request{Code: code, ChatJID: chatJID, Kind: msg.ChatGroup, Sender: "telegram:7", Title: "asked as", CreatedAt: at}
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutRequest(r) })
	return r
}

func TestRequest_Title_IsTheChatsPresentOne(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ask(t, s, "ABCD-1234", storetest.Chat, 10)
	for _, title := range []string{"Family", "Family & friends", ""} {
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutChat(storetest.Chat, msg.ChatGroup, title, 11) })
		want := title
		if title == "" {
			want = "asked as"
		}
		if r := storetest.Must(s.PendingRequest(t.Context(), storetest.Chat))(t); r.Title != want {
			t.Errorf("title %q, want %q", r.Title, want)
		}
	}
}

// A chat that moves while it waits, with a request at its new address as well.
func TestMoveChat_PendingAtBothAddresses_OneStays(t *testing.T) {
	t.Parallel()
	const from, to = "telegram:-5", "telegram:-1005"
	for name, tt := range map[string]struct {
		noted []string // approved, not connected yet
		stays string
	}{
		"neither approved": {nil, "NEWC-0000"},
		"former approved":  {[]string{"OLDC-0000"}, "OLDC-0000"},
		"present approved": {[]string{"NEWC-0000"}, "NEWC-0000"},
		"both approved":    {[]string{"OLDC-0000", "NEWC-0000"}, "NEWC-0000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			ask(t, s, "OLDC-0000", from, 10)
			ask(t, s, "NEWC-0000", to, 11)
			for _, code := range tt.noted {
				storetest.Write(t, s, func(tx *store.Tx) error { return tx.NoteApproval(code, "fam", "telegram:42") })
			}
			storetest.Write(t, s, func(tx *store.Tx) error { return tx.MoveChat(from, to, 50) })
			all := storetest.Must(s.Requests(t.Context(), "", 9))(t)
			for _, r := range all {
				switch {
				case r.ChatJID != to:
					t.Errorf("%s is of %s", r.Code, r.ChatJID)
				case r.Code == tt.stays && r.State != store.RequestPending:
					t.Errorf("%s should stay: %+v", r.Code, r)
				case r.Code != tt.stays && (r.State != store.RequestExpired || r.DecidedBy != store.DecidedByMove || r.DecidedAt != 50):
					t.Errorf("%s should have ended: %+v", r.Code, r)
				}
			}
			for _, jid := range []string{from, to} {
				if r := storetest.Must(s.PendingRequest(t.Context(), jid))(t); r == nil || r.Code != tt.stays {
					t.Errorf("pending of %s: %+v", jid, r)
				}
			}
		})
	}
}

func TestMoveChat_Pending_FollowsAndNewOnesGoThere(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ask(t, s, "ABCD-1234", "telegram:-5", 10)
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.MoveChat("telegram:-5", "telegram:-1005", 50) })
	if r := storetest.Must(s.PendingRequest(t.Context(), "telegram:-5"))(t); r == nil || r.ChatJID != "telegram:-1005" {
		t.Errorf("pending: %+v", r)
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.DecideRequest("ABCD-1234", store.RequestDecision{State: store.RequestExpired, By: store.DecidedByTime}, 60)
	})
	if r := ask(t, s, "ABCD-1235", "telegram:-5", 70); r.ChatJID != "telegram:-1005" {
		t.Errorf("a new request is of %s", r.ChatJID)
	}
	if r := storetest.Must(s.LastDecidedRequest(t.Context(), "telegram:-5"))(t); r == nil || r.Code != "ABCD-1234" {
		t.Errorf("last decided: %+v", r)
	}
}

func TestDirectChat_IsWhereTheUserWasSeenLast(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for jid, kind := range map[string]msg.ChatKind{
		"telegram:42": msg.ChatDM, "telegram:-9": msg.ChatGroup, "slack:D1": msg.ChatDM, "slack:D2": msg.ChatDM, "slack:D3": msg.ChatDM,
		"slack:C1": msg.ChatGroup, "discord:dm-1": msg.ChatDM, "telegram:43": msg.ChatGroup, "telegram:44": msg.ChatDM, "telegram:45": msg.ChatDM,
	} {
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutChat(jid, kind, "", 1) })
	}
	for _, m := range []*msg.Message{
		{ChatJID: "slack:D1", Sender: "slack:U1"}, {ChatJID: "slack:D2", Sender: "slack:U1"}, {ChatJID: "slack:D3", Sender: "slack:U1"},
		{ChatJID: "slack:D3", Sender: "slack:U2"}, // D3 is another user's now
		{ChatJID: "slack:C1", Sender: "slack:U1"}, {ChatJID: "slack:D1", Sender: "slack:U9", Direction: msg.Out},
		{ChatJID: "discord:dm-1", Sender: "slack:U1"}, {ChatJID: "telegram:-9", Sender: "telegram:43"},
		{ChatJID: "telegram:44", Sender: "telegram:44"}, {ChatJID: "telegram:44", Sender: "telegram:44", Verb: msg.VerbLeave}, // blocks the bot
		{ChatJID: "telegram:45", Sender: "telegram:45", Verb: msg.VerbLeave}, {ChatJID: "telegram:45", Sender: "telegram:45", Verb: msg.VerbJoin},
	} {
		if m.Direction == "" {
			m.Direction = msg.In
		}
		storetest.Stored(t, s, m)
	}
	for sender, want := range map[string]string{
		"telegram:42": "telegram:42", "slack:U1": "slack:D2", "slack:U2": "slack:D3", "slack:U9": "", "telegram:43": "", "web:operator": "",
		"telegram:44": "", "telegram:45": "telegram:45",
	} {
		if got := storetest.Must(s.DirectChat(t.Context(), sender))(t); got != want {
			t.Errorf("%s is reached in %q, want %q", sender, got, want)
		}
	}
}

func TestPutAudit_NeedsWhoAndWhat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutAudit("telegram:42", "approve", "ABCD-1234", 1) })
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.PutAudit("", "approve", "", 1) }); err == nil {
		t.Error("an audit row without who is stored")
	}
}

func TestMoveChat_BothApproving_OperatorOfTheEndedOneIsNotified(t *testing.T) {
	t.Parallel()
	for name, noted := range map[string]bool{"both are being approved": true, "the new one is not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			storetest.Write(t, s, func(tx *store.Tx) error {
				for code, jid := range map[string]string{"ABCD-0001": storetest.Chat, "ABCD-0002": "telegram:-1001"} {
					if err := tx.PutRequest(&store.Request{Code: code, ChatJID: jid, Kind: msg.ChatGroup, CreatedAt: 1}); err != nil {
						return err
					}
				}
				if err := tx.PutChat("telegram:42", msg.ChatDM, "Olga", 1); err != nil {
					return err
				}
				if noted {
					if err := tx.NoteApproval("ABCD-0002", "new", "telegram:43"); err != nil {
						return err
					}
				}
				return tx.NoteApproval("ABCD-0001", "old", "telegram:42")
			})
			before := storetest.Must(s.LastMessageID(t.Context()))(t)
			storetest.Write(t, s, func(tx *store.Tx) error { return tx.MoveChat(storetest.Chat, "telegram:-1001", 20) })
			last := storetest.Must(s.LastMessageID(t.Context()))(t)
			if !noted {
				if last != before {
					t.Error("an operator is notified whose approval goes on")
				}
				return
			}
			m := storetest.Must(s.Message(t.Context(), last))(t)
			if m.ChatJID != "telegram:42" || m.Source != msg.SourceNotice || m.OutState != msg.OutQueued ||
				!strings.Contains(m.Content, "Request ABCD-0001") || !strings.Contains(m.Content, "request ABCD-0002 of its present address is being approved into the group new") {
				t.Errorf("the notice is %+v", m)
			}
		})
	}
}
