package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/adapter/adaptertest/nettest"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/events"
	"arizuko/teled/internal/telegramapi"
)

// fixture is a fake Telegram with a private chat and a forum topic. Each fixture has the same ids.
type fixture struct {
	*fake.Server
	alice     fake.User
	dm, topic fake.Place
	plan      adaptertest.Plan
}

func newFixture(o fake.Options) *fixture {
	s := &fixture{Server: fake.New(o)}
	alice := s.User("Alice", "alice")
	s.alice = alice
	s.dm = s.DM(alice)
	s.dm.Say(alice, "/start")
	forum := s.Forum("Forum", alice)
	forum.AddBot(alice)
	s.topic = forum.Topic(alice, "Topic")
	return s
}

func TestConformance(t *testing.T) {
	s := newFixture(fake.Options{})
	adaptertest.Run(t, adaptertest.Platform{
		Name: "telegram", Chats: [2]string{telegramapi.JID("telegram", s.topic.ChatID), telegramapi.JID("telegram", s.dm.ChatID)},
		Thread: strconv.Itoa(s.topic.ThreadID), Replies: true,
		Options: func(o *adapter.Options) { o.Resend = adapter.ResendMarked },
		TooLong: func(text string) bool { return render.UTF16Len(text) > maxText },
		Marked:  func(text string) bool { return strings.HasPrefix(text, "(possibly sent twice) ") },
		New:     newRemote, Outages: true, Floods: true, Closes: true, Deletes: true, Photos: true, Writes: true, Previews: true, Questions: true, GoneID: "4711",
		Lane: func(i int) string { return telegramapi.JID("telegram", int64(7000000000+i)) },
	})
}

func newRemote(t testing.TB, st func() *store.Store) adaptertest.Remote {
	s, data := newFixture(fake.Options{}), t.TempDir()
	n := nettest.Serve(t, s)
	clients := adapter.Network{Dial: n.Dial, TLS: n.TLS()}
	return adaptertest.Remote{
		Connect: func() adapter.Platform {
			return unreachable{newSender(telegramapi.NewClient("https://telegram.test", s.Token(), clients.CallClient()), st(), data), s}
		},
		Listen: func() adapter.Listener {
			api := telegramapi.NewClient("https://telegram.test", s.Token(), clients.ListenClient())
			return &events.Listener{API: api, Bot: newSender(api, st(), "").Bot, Store: st()}
		},
		Received: s.received,
		Fail:     s.plan.Fail, SetOutage: n.SetOutage, Requests: n.Requests, FloodAccount: s.Flood, Asked: s.plan.Asked,
		CloseThread: func() { s.topic.CloseTopic(true) }, DeleteThread: s.topic.DeleteTopic,
		RefusePhoto: func() ([]byte, string) { return narrowPicture(t), "PHOTO_INVALID_DIMENSIONS" }, Data: data,
		Write: func(text string) { s.dm.Say(s.alice, text) },
		RefuseButtons: func() {
			s.InjectFault(fake.Fault{Method: "sendMessage", Status: http.StatusBadRequest, Description: "Bad Request: BUTTON_DATA_INVALID"})
		},
		Shown: s.shown, Delete: func(id string) {
			_, number := messageID(id)
			s.topic.Delete(int(number))
		},
		FailEdit: func(f adaptertest.Fault) {
			fault := faultOf(f)
			fault.Method = "editMessageText"
			s.InjectFault(fault)
		},
	}
}

func (s *fixture) received() (all []adaptertest.Received) {
	for _, c := range s.Sent() {
		if len(c.Messages) == 0 {
			continue
		}
		r := adaptertest.Received{ChatJID: telegramapi.JID("telegram", c.ChatID), Text: c.Text}
		if c.ThreadID != 0 {
			r.Thread = strconv.Itoa(c.ThreadID)
		}
		if to := c.Messages[0].ReplyTo; to != nil {
			r.ReplyTo = strconv.Itoa(to.ID)
		}
		if len(c.Files) > 0 {
			r.File = c.Files[0].Name
		}
		all = append(all, r)
	}
	return all
}

// shown are the messages of the bot outside of the topic.
func (s *fixture) shown() (all []adaptertest.Shown) {
	forum := s.topic
	forum.ThreadID = 0
	for _, m := range forum.Messages() {
		if m.From.ID == s.Me().ID && m.Text != "" {
			all = append(all, adaptertest.Shown{ID: strconv.Itoa(m.ID), Text: m.Text, Stop: m.Buttons()[msg.StopLabel], Buttons: adaptertest.Buttons(m.Buttons())})
		}
	}
	return all
}

// narrowPicture is a picture that is more than twenty times as high as wide.
func narrowPicture(t testing.TB) []byte {
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, 1, 30))); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// ServeHTTP injects the planned faults.
func (s *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/sendMessage") {
		s.Server.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body) // an incomplete form is refused
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, _ := url.ParseQuery(string(body))
	s.plan.Deliver(r.Context(), "telegram:"+form.Get("chat_id"), s.inject, func() { s.Server.ServeHTTP(w, r) })
}

func (s *fixture) inject(f adaptertest.Fault) { s.InjectFault(faultOf(f)) }

func faultOf(f adaptertest.Fault) fake.Fault {
	switch f.Class {
	case msg.Rate:
		return fake.Fault{Method: "sendMessage", RetryAfter: max(1, int(f.After/time.Second))}
	case msg.Auth:
		return fake.Fault{Method: "sendMessage", Status: http.StatusUnauthorized}
	case msg.Ambiguous:
		return fake.Fault{Method: "sendMessage", Status: http.StatusBadGateway, After: f.Arrived}
	}
	return fake.Fault{Method: "sendMessage", Status: http.StatusForbidden, Description: "Forbidden: bot was blocked by the user"}
}

// unreachable is a Sender whose planned parts do not reach Telegram.
type unreachable struct {
	*Sender
	fixture *fixture
}

func (u unreachable) Send(ctx context.Context, m *msg.Message, p adapter.Part) (string, error) {
	if u.fixture.plan.Unreached(m.ChatJID) {
		return "", u.API.Failure(ctx, fmt.Errorf("sendMessage: %w: %w", adapter.ErrUnsent, errors.New("connection refused")))
	}
	return u.Sender.Send(ctx, m, p)
}
