package webchat

import (
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// The remote of the web chat is the rows that pages read: nothing has to be sent, so nothing can
// fail or be repeated.
func TestPlatform_Conformance(t *testing.T) {
	adaptertest.Run(t, adaptertest.Platform{
		Name: msg.PlatformWeb, Raw: true, Chats: [2]string{JID("main"), JID("other")},
		Options: func(o *adapter.Options) { o.Repeatable = true },
		New: func(t testing.TB, st func() *store.Store) adaptertest.Remote {
			return adaptertest.Remote{
				Connect: func() adapter.Platform { return Platform{} },
				Received: func() (all []adaptertest.Received) {
					for _, folder := range []string{"main", "other"} {
						all = append(all, onPages(t, &Chat{Store: st()}, folder)...)
					}
					return all
				},
			}
		},
	})
}

// onPages returns what the pages of a group show.
func onPages(t testing.TB, c *Chat, folder string) (all []adaptertest.Received) {
	rows, _, err := c.Store.WebAfter(t.Context(), JID(folder), 0, 1000)
	if err != nil {
		t.Error(err)
	}
	for _, m := range rows {
		shown, err := c.onPage(t.Context(), m, form{})
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, adaptertest.Received{ChatJID: m.ChatJID, Text: *shown.Content})
	}
	return all
}
