package rows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/onbod/internal/rows"
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

func TestRequest_OnePendingPerChat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ask(t, s, "ABCD-1234", storetest.Chat, 10)
	for _, r := range []*store.Request{
		{Code: "ABCD-1235", ChatJID: storetest.Chat, Kind: msg.ChatDM, CreatedAt: 11},
		{Code: "ABCD-1234", ChatJID: "telegram:-2", Kind: msg.ChatDM, CreatedAt: 11},
	} {
		err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.PutRequest(r) })
		if !errors.Is(err, store.ErrRefused) {
			t.Errorf("%s for %s: %v, want refused", r.Code, r.ChatJID, err)
		}
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.DecideRequest("ABCD-1234", store.RequestDecision{State: store.RequestRejected, By: "telegram:42", Reason: "no"}, 20)
	})
	ask(t, s, "ABCD-1235", storetest.Chat, 30)
	if r := storetest.Must(s.PendingRequest(t.Context(), storetest.Chat))(t); r == nil || r.Code != "ABCD-1235" {
		t.Errorf("pending: %+v", r)
	}
	want := &store.Request{
		Code: "ABCD-1234", ChatJID: storetest.Chat, Kind: msg.ChatGroup, Sender: "telegram:7", Title: "asked as", State: store.RequestRejected,
		DecidedBy: "telegram:42", DecidedAt: 20, Reason: "no", CreatedAt: 10,
	}
	if diff := cmp.Diff(want, storetest.Must(s.LastDecidedRequest(t.Context(), storetest.Chat))(t)); diff != "" {
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
		return tx.DecideRequest("ABCD-1234", store.RequestDecision{State: store.RequestApproved, Folder: "fam", By: "telegram:42"}, 20)
	}
	note := func(tx *store.Tx) error { return tx.NoteApproval("ABCD-1234", "fam", "telegram:42") }
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
				return tx.DecideRequest(code, store.RequestDecision{State: store.RequestExpired, By: store.DecidedByTime}, 20)
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
	codes := func(all []*store.Request) (codes []string) {
		for _, r := range all {
			codes = append(codes, strings.TrimPrefix(r.Code, "ABCD-000"))
		}
		return codes
	}
	if got := codes(storetest.Must(s.Requests(t.Context(), store.RequestExpired, 2))(t)); !slices.Equal(got, []string{"2", "1"}) {
		t.Errorf("expired: %v", got)
	}
	if got := codes(storetest.Must(s.Requests(t.Context(), "", 3))(t)); !slices.Equal(got, []string{"9", "8", "7"}) {
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
	if got := codes(storetest.Must(s.Requests(t.Context(), store.RequestExpired, 5))(t)); deleted != 2 || !slices.Equal(got, []string{"2"}) {
		t.Errorf("purged %d, left %v", deleted, got)
	}
	storetest.Write(t, s, func(tx *store.Tx) (err error) { deleted, err = rows.PurgeRequests(tx, 30, 9); return err })
	if n := len(storetest.Must(rows.PendingRequests(t.Context(), s.Reader))(t)); n != 7 || deleted != 1 {
		t.Errorf("%d pending are left, %d deleted", n, deleted)
	}
}
