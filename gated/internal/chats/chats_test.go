package chats_test

import (
	"testing"

	"arizuko/gated/internal/chats"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const (
	room   = "telegram:-1"
	direct = "slack:D1"
)

type fixture struct {
	t     *testing.T
	st    *store.Store
	chats *chats.Chats
}

func newFixture(t *testing.T, routes ...msg.Route) *fixture {
	t.Helper()
	f := &fixture{t: t, st: storetest.Open(t), chats: &chats.Chats{}}
	f.write(func(tx *store.Tx) error {
		for _, folder := range []string{"acme", "acme/eng", "other"} {
			if _, err := tx.PutGroup(&msg.Group{Folder: folder, Name: folder, CreatedAt: 1, Config: []byte("{}")}); err != nil {
				return err
			}
		}
		if err := tx.PutChat(room, msg.ChatGroup, "", 1); err != nil {
			return err
		}
		return tx.PutChat(direct, msg.ChatDM, "", 1)
	})
	f.route(routes...)
	return f
}

func (f *fixture) write(fn func(*store.Tx) error) {
	f.t.Helper()
	if err := f.st.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) route(routes ...msg.Route) {
	f.t.Helper()
	f.write(func(tx *store.Tx) error {
		for _, r := range routes {
			if err := tx.PutRoute(&r); err != nil {
				return err
			}
		}
		return nil
	})
}

// said stores a message of a user, answered by a group.
func (f *fixture) said(jid, user, folder string) {
	f.t.Helper()
	m := &msg.Message{ChatJID: jid, Direction: msg.In, Content: "hi", Sender: user, Timestamp: 1, ReceivedAt: 1}
	f.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRoute, RoutedTo: folder}, 2)
	})
}

func (f *fixture) want(jid, home string) {
	f.t.Helper()
	got, err := f.chats.Home(f.t.Context(), f.st.Reader, jid)
	if err != nil || got != home {
		f.t.Errorf("home of %s is %q, %v, want %q", jid, got, err, home)
	}
}

func TestHome_PresentRoutes_CountMoreThanHistory(t *testing.T) {
	t.Parallel()
	f := newFixture(t, msg.Route{Match: "chat_jid=" + room, Target: "acme"})
	f.said(room, "telegram:7", "acme")
	f.want(room, "acme")
	f.route(msg.Route{Seq: -1, Match: "chat_jid=" + room, Target: "other"})
	f.want(room, "other")
	f.write(func(tx *store.Tx) error { return rows.PinGroup(tx, room, "acme/eng", 5) })
	f.want(room, "acme/eng")
	for folder, may := range map[string]bool{"acme": true, "acme/eng": true, "other": false} {
		if got, err := f.chats.MayWrite(t.Context(), f.st.Reader, room, folder); err != nil || got != may {
			t.Errorf("%s may write: %v, %v", folder, got, err)
		}
	}
}

func TestHome_RouteByVerb_LastGroupAsLongAsItLeadsThere(t *testing.T) {
	t.Parallel()
	f := newFixture(t, msg.Route{Match: "verb=mention", Target: "acme"})
	f.want(room, "")
	f.said(room, "telegram:7", "other")
	f.want(room, "")
	f.said(room, "telegram:7", "acme")
	f.want(room, "acme")
	f.route(msg.Route{Seq: -1, Match: "platform=telegram", Target: "builtin:drop"})
	f.want(room, "")
}

func TestHome_DirectMessage_IsThatOfItsUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t, msg.Route{Match: "sender=slack:U1", Target: "acme"}, msg.Route{Match: "sender=telegram:42", Target: "acme"})
	f.write(func(tx *store.Tx) error { return tx.PutChat("telegram:42", msg.ChatDM, "", 1) })
	f.want(direct, "")
	f.said(direct, "slack:U2", "other")
	f.want(direct, "")
	f.said(direct, "slack:U1", "acme")
	f.want(direct, "acme")
	f.want("telegram:42", "acme")
	f.want("telegram:43", "")
}

func TestHome_ChatWithoutMessages_OnlyIfARouteNamesIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, msg.Route{Match: "chat_jid=telegram:-9", Target: "acme"}, msg.Route{Match: "platform=telegram", Target: "acme"})
	f.want("telegram:-9", "acme")
	f.want("telegram:77", "")
	f.want(room, "acme")
	f.want("web:acme/eng", "acme/eng")
	f.want("web:gone", "")
}

func TestOf_ListsHomesOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t, msg.Route{Match: "sender=slack:U1", Target: "acme"}, msg.Route{Match: "platform=telegram", Target: "acme"}, msg.Route{Match: "platform=slack", Target: "other"})
	f.said(direct, "slack:U1", "acme")
	for folder, want := range map[string]int{"acme": 2, "other": 0, "acme/eng": 0} {
		if got, err := f.chats.Of(t.Context(), f.st.Reader, folder, 10); err != nil || len(got) != want {
			t.Errorf("%s: %v, %v", folder, got, err)
		}
	}
	if got, err := f.chats.Of(t.Context(), f.st.Reader, "acme", 1); err != nil || len(got) != 1 {
		t.Errorf("at most one: %v, %v", got, err)
	}
}
