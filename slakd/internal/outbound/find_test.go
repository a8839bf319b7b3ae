package outbound

import (
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
	fake "arizuko/pkg/testkit/fakes/slack"
	"arizuko/slakd/internal/slackapi"
)

func TestFind_ScopeMissing_NamesTheScope(t *testing.T) {
	server := fake.New(fake.Options{Scopes: slices.DeleteFunc(fake.DefaultScopes(), func(s string) bool { return s == "channels:history" })})
	base, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	team := server.Channel("team", server.User("Alice", "alice"))
	api := slackapi.NewClient(base+"/api/", server.BotToken(), "", adapter.NewCallClient())
	t.Cleanup(api.Close)
	s := &Sender{Identity: first, API: api, Store: storetest.Open(t)}
	m := &msg.Message{ID: 1, ChatJID: "slack:" + team.ChannelID, Content: "hello", ReceivedAt: time.Now().UnixMilli()}
	parts, err := s.Cut(m)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := s.Find(t.Context(), m, parts[0]); err == nil || id != "" || !strings.Contains(err.Error(), "channels:history") {
		t.Errorf("found %q, %v", id, err)
	}
}
