package rows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/onbod/internal/rows"
	"arizuko/pkg/chatmove"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// ask stores a pending request of a chat.
func ask(t testing.TB, s *store.Store, code, chatJID string, at int64) *factrows.Request {
	t.Helper()
	r := &factrows.Request{Code: code, ChatJID: chatJID, Kind: msg.ChatGroup, Sender: "telegram:7", Title: "asked as", CreatedAt: at}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.PutRequest(tx, r) })
	return r
}

func TestRequest_OnePendingPerChat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ask(t, s, "ABCD-1234", storetest.Chat, 10)
	for _, r := range []*factrows.Request{
		{Code: "ABCD-1235", ChatJID: storetest.Chat, Kind: msg.ChatDM, CreatedAt: 11},
		{Code: "ABCD-1234", ChatJID: "telegram:-2", Kind: msg.ChatDM, CreatedAt: 11},
	} {
		err := s.Write(t.Context(), func(tx *store.Tx) error { return rows.PutRequest(tx, r) })
		if !errors.Is(err, store.ErrRefused) {
			t.Errorf("%s for %s: %v, want refused", r.Code, r.ChatJID, err)
		}
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.DecideRequest(tx, "ABCD-1234", rows.RequestDecision{State: factrows.RequestRejected, By: "telegram:42", Reason: "no"}, 20)
	})
	ask(t, s, "ABCD-1235", storetest.Chat, 30)
	if r := storetest.Must(factrows.PendingRequest(t.Context(), s.Reader, storetest.Chat))(t); r == nil || r.Code != "ABCD-1235" {
		t.Errorf("pending: %+v", r)
	}
	want := &factrows.Request{
		Code: "ABCD-1234", ChatJID: storetest.Chat, Kind: msg.ChatGroup, Sender: "telegram:7", Title: "asked as", State: factrows.RequestRejected,
		DecidedBy: "telegram:42", DecidedAt: 20, Reason: "no", CreatedAt: 10,
	}
	if diff := cmp.Diff(want, storetest.Must(factrows.LastDecidedRequest(t.Context(), s.Reader, storetest.Chat))(t)); diff != "" {
		t.Errorf("last decided (-want +got):\n%s", diff)
	}
	if r := storetest.Must(rows.Request(t.Context(), s.Reader, "NONE-0000"))(t); r != nil {
		t.Errorf("unknown code: %+v", r)
	}
}

func TestRequest_Decision_OnlyOnceAndOnlyPending(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ask(t, s, "ABCD-1234", storetest.Chat, 10)
	approve := func(tx *store.Tx) error {
		return rows.DecideRequest(tx, "ABCD-1234", rows.RequestDecision{State: factrows.RequestApproved, Folder: "fam", By: "telegram:42"}, 20)
	}
	note := func(tx *store.Tx) error { return rows.NoteApproval(tx, "ABCD-1234", "fam", "telegram:42") }
	withdraw := func(tx *store.Tx) error { return rows.WithdrawApproval(tx, "ABCD-1234") }
	storetest.Write(t, s, note)
	if r := storetest.Must(rows.Request(t.Context(), s.Reader, "ABCD-1234"))(t); !r.Noted() || r.DecidedBy != "telegram:42" {
		t.Errorf("noted: %+v", r)
	}
	if err := s.Write(t.Context(), note); !errors.Is(err, store.ErrStale) {
		t.Errorf("noted twice: %v", err)
	}
	storetest.Write(t, s, withdraw)
	if r := storetest.Must(rows.Request(t.Context(), s.Reader, "ABCD-1234"))(t); r.Noted() || r.DecidedBy != "" {
		t.Errorf("withdrawn: %+v", r)
	}
	storetest.Write(t, s, note)
	storetest.Write(t, s, approve)
	for name, change := range map[string]func(*store.Tx) error{"note": note, "withdraw": withdraw, "approve": approve} {
		if err := s.Write(t.Context(), change); !errors.Is(err, store.ErrStale) {
			t.Errorf("%s of an approved request: %v", name, err)
		}
	}
}

func TestRequests_CountedAndListed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for i := range 10 {
		code := fmt.Sprintf("ABCD-000%d", i)
		ask(t, s, code, fmt.Sprintf("telegram:-%d", i), int64(i))
		if i < 3 {
			storetest.Write(t, s, func(tx *store.Tx) error {
				return rows.DecideRequest(tx, code, rows.RequestDecision{State: factrows.RequestExpired, By: factrows.DecidedByTime}, 20)
			})
		}
	}
	want := rows.RequestCounts{OfSender: 4, Made: 4, Pending: 7}
	if got := storetest.Must(rows.CountRequests(t.Context(), s.Reader, "telegram:7", 4, 8))(t); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	if got := storetest.Must(rows.CountRequests(t.Context(), s.Reader, "telegram:8", 4, 8))(t); got.OfSender != 0 {
		t.Errorf("counts of another sender: %+v", got)
	}
	codes := func(all []*factrows.Request) (codes []string) {
		for _, r := range all {
			codes = append(codes, strings.TrimPrefix(r.Code, "ABCD-000"))
		}
		return codes
	}
	if got := codes(storetest.Must(factrows.Requests(t.Context(), s.Reader, factrows.RequestExpired, 2))(t)); !slices.Equal(got, []string{"2", "1"}) {
		t.Errorf("expired: %v", got)
	}
	if got := codes(storetest.Must(factrows.Requests(t.Context(), s.Reader, "", 3))(t)); !slices.Equal(got, []string{"9", "8", "7"}) {
		t.Errorf("all: %v", got)
	}
	if at := storetest.Must(rows.NthRequestAt(t.Context(), s.Reader, 7))(t); at != 2 {
		t.Errorf("the request with 7 newer ones was made at %d", at)
	}
	if at := storetest.Must(rows.NthRequestAt(t.Context(), s.Reader, 10))(t); at != 0 {
		t.Errorf("of 10 none has 10 newer ones: %d", at)
	}
	var deleted int64
	storetest.Write(t, s, func(tx *store.Tx) (err error) { deleted, err = rows.PurgeRequests(tx, 30, 2); return err })
	if got := codes(storetest.Must(factrows.Requests(t.Context(), s.Reader, factrows.RequestExpired, 5))(t)); deleted != 2 || !slices.Equal(got, []string{"2"}) {
		t.Errorf("purged %d, left %v", deleted, got)
	}
	storetest.Write(t, s, func(tx *store.Tx) (err error) { deleted, err = rows.PurgeRequests(tx, 30, 9); return err })
	if n := len(storetest.Must(rows.PendingRequests(t.Context(), s.Reader))(t)); n != 7 || deleted != 1 {
		t.Errorf("%d pending are left, %d deleted", n, deleted)
	}
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
		if r := storetest.Must(factrows.PendingRequest(t.Context(), s.Reader, storetest.Chat))(t); r.Title != want {
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
				storetest.Write(t, s, func(tx *store.Tx) error { return rows.NoteApproval(tx, code, "fam", "telegram:42") })
			}
			storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, from, to, 50) })
			all := storetest.Must(factrows.Requests(t.Context(), s.Reader, "", 9))(t)
			for _, r := range all {
				switch {
				case r.ChatJID != to:
					t.Errorf("%s is of %s", r.Code, r.ChatJID)
				case r.Code == tt.stays && r.State != factrows.RequestPending:
					t.Errorf("%s should stay: %+v", r.Code, r)
				case r.Code != tt.stays && (r.State != factrows.RequestExpired || r.DecidedBy != factrows.DecidedByMove || r.DecidedAt != 50):
					t.Errorf("%s should have ended: %+v", r.Code, r)
				}
			}
			for _, jid := range []string{from, to} {
				if r := storetest.Must(factrows.PendingRequest(t.Context(), s.Reader, jid))(t); r == nil || r.Code != tt.stays {
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
	storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, "telegram:-5", "telegram:-1005", 50) })
	if r := storetest.Must(factrows.PendingRequest(t.Context(), s.Reader, "telegram:-5"))(t); r == nil || r.ChatJID != "telegram:-1005" {
		t.Errorf("pending: %+v", r)
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.DecideRequest(tx, "ABCD-1234", rows.RequestDecision{State: factrows.RequestExpired, By: factrows.DecidedByTime}, 60)
	})
	if r := ask(t, s, "ABCD-1235", "telegram:-5", 70); r.ChatJID != "telegram:-1005" {
		t.Errorf("a new request is of %s", r.ChatJID)
	}
	if r := storetest.Must(factrows.LastDecidedRequest(t.Context(), s.Reader, "telegram:-5"))(t); r == nil || r.Code != "ABCD-1234" {
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
		if got := storetest.Must(factrows.DirectChat(t.Context(), s.Reader, sender))(t); got != want {
			t.Errorf("%s is reached in %q, want %q", sender, got, want)
		}
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
					if err := rows.PutRequest(tx, &factrows.Request{Code: code, ChatJID: jid, Kind: msg.ChatGroup, CreatedAt: 1}); err != nil {
						return err
					}
				}
				if err := tx.PutChat("telegram:42", msg.ChatDM, "Olga", 1); err != nil {
					return err
				}
				if noted {
					if err := rows.NoteApproval(tx, "ABCD-0002", "new", "telegram:43"); err != nil {
						return err
					}
				}
				return rows.NoteApproval(tx, "ABCD-0001", "old", "telegram:42")
			})
			before := storetest.Must(s.LastMessageID(t.Context()))(t)
			storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, storetest.Chat, "telegram:-1001", 20) })
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
