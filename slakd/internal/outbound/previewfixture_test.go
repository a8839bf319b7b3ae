package outbound

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest/nettest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	fake "arizuko/pkg/testkit/fakes/slack"
	"arizuko/slakd/internal/slackapi"
)

// previewFixture is a thread of a channel in which a turn answers Alice.
type previewFixture struct {
	*Sender
	t      *testing.T
	server *fake.Server
	alice  fake.User
	place  fake.Place // the thread
	turn   int64
	asked  int
}

// previewTest runs a test in a bubble.
func previewTest(t *testing.T, o fake.Options, test func(f *previewFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := fake.New(o)
		n := nettest.Serve(t, server)
		api := slackapi.NewClient("https://slack.test/api/", server.BotToken(), "", adapter.Network{Dial: n.Dial, TLS: n.TLS()}.CallClient())
		t.Cleanup(api.Close)
		f := &previewFixture{t: t, server: server, alice: server.User("Alice", "alice"), Sender: &Sender{Identity: first, Log: slog.New(slog.DiscardHandler), API: api, Store: storetest.Open(t)}}
		room := server.Channel("team", f.alice)
		f.place = room.Thread(room.Say(f.alice, "go").TS)
		f.turn = f.asks("slack:" + f.alice.ID)
		test(f)
	})
}

// asks stores a message of a sender in the thread, and a turn that answers it.
func (f *previewFixture) asks(sender string) (turn int64) {
	f.t.Helper()
	f.asked++
	row := &msg.Message{ChatJID: f.lane().ChatJID, PlatformID: fmt.Sprint(f.asked, ".1"), Direction: msg.In, Sender: sender, Verb: msg.VerbMessage, ThreadID: f.place.ThreadTS, Timestamp: 1, ReceivedAt: 1}
	next := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: row.ChatJID, ThreadID: row.ThreadID, Topic: row.ThreadID, Place: row.ThreadID}
	if err := f.Store.Write(f.t.Context(), func(tx *store.Tx) error {
		id, _, err := tx.PutMessage(row)
		if err != nil {
			return err
		}
		next.TriggerMessageID = id
		_, err = gatedtest.PutTurn(tx, next, 0)
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
	return next.ID
}

func (f *previewFixture) lane() store.Lane {
	return store.Lane{ChatJID: "slack:" + f.place.ChannelID, ThreadID: f.place.ThreadTS}
}

// show shows a preview, which must succeed.
func (f *previewFixture) show(p adapter.Preview) string {
	f.t.Helper()
	id, err := f.try(p)
	if err != nil {
		f.t.Fatalf("show %+v: %v", p, err)
	}
	return id
}

func (f *previewFixture) try(p adapter.Preview) (string, error) {
	p.Turn, p.In = f.turn, f.lane()
	if p.Mode == "" {
		p.Mode = msg.PreviewText
	}
	return f.ShowPreview(f.t.Context(), &p)
}

// text is what a message shows, which must be no open stream. An edited preview has a button.
func (f *previewFixture) text(ts string) string {
	f.t.Helper()
	for _, m := range f.place.Messages() {
		if m.TS == ts {
			if stream, is := f.place.Stream(ts); is && stream.IsOpen() {
				f.t.Errorf("%s is a stream: %+v", ts, stream)
			}
			if string(m.Blocks) != "" && string(m.Blocks) != "[]" {
				var section struct{ Text struct{ Text string } }
				var blocks []json.RawMessage
				if err := json.Unmarshal(m.Blocks, &blocks); err != nil || json.Unmarshal(blocks[0], &section) != nil ||
					section.Text.Text != m.Text || m.Buttons()["Stop"] != msg.StopData(f.turn) {
					f.t.Errorf("%s shows %s, its text is %q", ts, m.Blocks, m.Text)
				}
			}
			return m.Text
		}
	}
	return ""
}

// expectButton checks whether a message has a button that stops its turn.
func (f *previewFixture) expectButton(ts string, want bool) {
	f.t.Helper()
	for _, m := range f.place.Messages() {
		if m.TS == ts && (m.Buttons()["Stop"] == msg.StopData(f.turn)) != want {
			f.t.Errorf("%s has the buttons %q", ts, m.Buttons())
		}
	}
}

// replies are the texts of the bot in the thread.
func (f *previewFixture) replies() (texts []string) {
	for _, m := range f.place.Messages() {
		if m.BotID != "" {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

func (f *previewFixture) stream(ts string, want fake.Stream) {
	f.t.Helper()
	got, is := f.place.Stream(ts)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(fake.Stream{})); diff != "" || !is || !got.IsOpen() {
		f.t.Errorf("the stream, open %v (-want +got):\n%s", is && got.IsOpen(), diff)
	}
}

func (f *previewFixture) calls(method string) (n int) {
	for _, c := range f.server.Calls() {
		if c.Method == method && c.Accepted {
			n++
		}
	}
	return n
}

// takes makes the preview into the answer.
func (f *previewFixture) takes(ts, markdown string) error {
	f.t.Helper()
	m := &msg.Message{ID: 9, ChatJID: f.lane().ChatJID, ThreadID: f.place.ThreadTS, Content: markdown, ReceivedAt: time.Now().UnixMilli()}
	parts, err := f.Cut(m)
	if err != nil {
		f.t.Fatal(err)
	}
	edit, ok := f.TakeOver(parts[0], ts)
	if !ok {
		f.t.Fatal("the answer cannot take the preview over")
	}
	if r, is := edit.(adapter.Repeatable); !is || !r.Repeatable() {
		f.t.Error("the edit is not repeatable")
	}
	id, err := f.Send(f.t.Context(), m, edit)
	if err == nil && id != ts {
		f.t.Errorf("the answer is %q, want %q", id, ts)
	}
	return err
}

func (f *previewFixture) refuses(code string) {
	f.server.InjectFault(fake.Fault{Method: "chat.startStream", Error: code, Times: -1})
}
