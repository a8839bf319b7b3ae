package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// decode returns a tool's result.
func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func TestSendMessage_GoesToPlaceOfTurn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	out := decode[messageOut](t, f.works("send_message", `{"text":"<internal>hm</internal>one moment, hunter2"}`))
	sent := f.outbound()
	if len(sent) != 1 {
		t.Fatalf("%d messages", len(sent))
	}
	m := sent[0]
	if m.ID != out.MessageID || m.Content != "one moment, [redacted]" || m.ChatJID != chat || m.Source != msg.SourceTool ||
		m.OutState != msg.OutQueued || m.Sender != "agent:acme" || m.SenderName != "ari" || !m.IsBot || m.TurnID != f.turn.ID {
		t.Errorf("sent %+v", m)
	}
	f.refused("send_message", `{"text":"<think>only thoughts</think>"}`, "nothing is sent")
}

func TestSendMessage_GroupWantsFiles_LongBlockFollowsAsFile(t *testing.T) {
	t.Parallel()
	text := "before\n\n> ```python\n" + strings.Repeat("> key = 'hunter2'\n", 400) + "> ```\nafter"
	for name, tt := range map[string]struct {
		long  groupconfig.Long
		chat  string
		daily int64
		files bool
	}{
		"as a file":            {groupconfig.LongFile, chat, 1 << 20, true},
		"parts":                {groupconfig.LongParts, chat, 1 << 20, false},
		"the web has no limit": {groupconfig.LongFile, "web:acme/eng", 1 << 20, false},
		"no room today":        {groupconfig.LongFile, chat, 1000, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.services.MediaDaily = tt.daily
			turn, access := f.turn, f.access
			if tt.chat != chat {
				_, turn, access = f.startRun("acme/eng", tt.chat, "a table")
			}
			access.Begin(turn.ID, &groupconfig.Config{AssistantName: "ari", Long: tt.long})
			in := storetest.Must(json.Marshal(sendMessageIn{Text: text}))(t)
			result, failed := f.callAs(access, "send_message", string(in))
			if failed {
				t.Fatal(result)
			}
			out := decode[messageOut](t, result)
			last := f.last()
			if !tt.files {
				if last.ID != out.MessageID || !strings.HasSuffix(last.Content, "> ```\nafter") {
					t.Fatalf("the text is %.60q", last.Content)
				}
				return
			}
			m := f.row(out.MessageID)
			if m.Content != "before\n\n> [code.py: 400 lines]\n>\nafter" || last.ID != m.ID+1 || last.Kind != msg.KindFile || last.Content != "" ||
				last.OutState != msg.OutQueued || last.TurnID != turn.ID || len(last.Attachments) != 1 {
				t.Fatalf("the text is %.60q, then %+v", m.Content, last)
			}
			got, err := os.ReadFile(filepath.Join(f.data, last.Attachments[0].Path))
			if err != nil || string(got) != strings.Repeat("key = '[redacted]'\n", 400) {
				t.Errorf("the file is %.60q, %v", got, err)
			}
		})
	}
}

func TestSendMessage_Topics(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := &msg.Message{ChatJID: chat, Direction: msg.In, Content: "x", Sender: "telegram:7", ThreadID: "77", Topic: "77", Timestamp: 1, ReceivedAt: 2}
	f.put(in)
	for topic, want := range map[string]struct{ thread, place string }{
		"#deploy": {"", "#deploy"}, "77": {"77", "77"}, "77#fix": {"77", "77#fix"},
	} {
		f.works("send_message", fmt.Sprintf(`{"text":%q,"topic":%q}`, "to "+topic, topic))
		sent := f.outbound()
		if m := sent[len(sent)-1]; m.ThreadID != want.thread || m.Topic != want.place {
			t.Errorf("%s: thread %q, place %q", topic, m.ThreadID, m.Topic)
		}
	}
	f.refused("send_message", `{"text":"x","topic":"78"}`, "no thread")
	f.refused("send_message", `{"text":"x","topic":"#not valid"}`, "not valid")
}

func TestResetSession_OwnTopicOrBelow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(func(tx *store.Tx) error {
		return rows.StoreSession(tx, &msg.Run{ID: f.access.run.ID, Folder: folder}, "s1", 1)
	})
	f.works("reset_session", `{"groupFolder":"acme"}`)
	if id, err := factrows.Session(t.Context(), f.st.Reader, folder, ""); err != nil || id != "" {
		t.Errorf("session %q, %v", id, err)
	}
	f.mu.Lock()
	drained := slices.Clone(f.drained)
	f.mu.Unlock()
	if !slices.Equal(drained, []int64{f.access.run.ID}) {
		t.Errorf("drained %v", drained)
	}
	f.works("send_message", `{"text":"the present answer goes on"}`)
	f.works("reset_session", `{"groupFolder":"acme/eng","topic":"#deploy"}`)
	f.refused("reset_session", `{}`, "groupFolder")
}

func TestInspectSession_ClampsLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 120 {
		run := msg.Run{Folder: folder, Topic: "#old", ChatJID: chat, Runtime: "process", StartedAt: 1}
		m := &msg.Message{ChatJID: "telegram:-7", Direction: msg.In, Content: "x", Timestamp: 1, ReceivedAt: 2}
		f.put(m)
		f.write(func(tx *store.Tx) error {
			turn := &msg.Turn{Kind: msg.Conversation, Folder: folder, ChatJID: "telegram:-7", Topic: "#old", TriggerMessageID: m.ID, CreatedAt: 1}
			if _, err := rows.PutTurn(tx, turn, 5); err != nil {
				return err
			}
			if err := rows.StartRun(tx, &run, turn.ID); err != nil {
				return err
			}
			if err := rows.FinishTurn(tx, turn, msg.TurnDone, msg.ReasonAnswered, "", 2); err != nil {
				return err
			}
			return rows.EndRun(tx, run.ID, "hunter2 was wrong", 3)
		})
	}
	for limit, want := range map[string]int{"": 10, `,"limit":0`: 1, `,"limit":-5`: 1, `,"limit":7`: 7, `,"limit":1000`: 100} {
		out := decode[inspectSessionOut](t, f.works("inspect_session", `{"topic":"#old"`+limit+`}`))
		if len(out.Recent) != want || out.Folder != folder || out.Topic != "#old" {
			t.Errorf("limit %q: %d runs of %s %s", limit, len(out.Recent), out.Folder, out.Topic)
		}
		if !strings.Contains(out.Recent[0].Error, "[redacted]") {
			t.Errorf("error %q", out.Recent[0].Error)
		}
	}
}

func TestSearchMessages_OwnHistoryOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ask(folder, "telegram:-5", "a needle in another chat")
	f.ask(folder, "telegram:55", "a needle in a direct message")
	f.ask("other", "telegram:-6", "a needle of another group")
	f.ask(folder, chat, "a NEEDLE here, 100%_sure")
	f.works("send_message", `{"text":"a needle of mine"}`)
	search := func(arguments string) (texts []string) {
		t.Helper()
		for _, m := range decode[searchMessagesOut](t, f.works("search_messages", arguments)).Messages {
			texts = append(texts, m.Text)
		}
		return texts
	}
	if got := search(`{"text":"needle"}`); !slices.Equal(got, []string{"a needle of mine", "a NEEDLE here, 100%_sure", "a needle in another chat"}) {
		t.Errorf("found %q", got)
	}
	if got := search(`{"text":"100%_"}`); len(got) != 1 {
		t.Errorf("found %q", got)
	}
	if got := search(`{"text":"n%e"}`); len(got) != 0 {
		t.Errorf("a wildcard found %q", got)
	}
	page := decode[searchMessagesOut](t, f.works("search_messages", `{"text":"needle","limit":1}`))
	if !page.Truncated || len(page.Messages) != 1 {
		t.Errorf("page %+v", page)
	}
	rest := decode[searchMessagesOut](t, f.works("search_messages", fmt.Sprintf(`{"text":"needle","before":%q}`, page.Next)))
	if len(rest.Messages) != 2 || rest.Next != "" {
		t.Errorf("the next page: %+v", rest)
	}
	for _, before := range []string{"12", "12-", "-", "a-b", "-1-2", "1-2-3"} {
		f.refused("search_messages", fmt.Sprintf(`{"text":"needle","before":%q}`, before), "is not the next of an earlier result")
	}
	f.observe(groupconfig.ObserveNone)
	if got := search(`{"text":"needle"}`); len(got) != 2 {
		t.Errorf("without other chats: %q", got)
	}
	f.observe(groupconfig.ObserveAll)
	if got := search(`{"text":"needle"}`); len(got) != 4 {
		t.Errorf("with all chats: %q", got)
	}
	f.refused("search_messages", `{"text":"   "}`, "blank")
}

func TestGetThread_BoundsAndOtherChats(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	elsewhere := f.ask(folder, "telegram:-5", "middle")
	f.ask("other", "telegram:-5", "of another group in a shared chat")
	f.ask(folder, "telegram:-5", "after")
	direct := f.ask(folder, "telegram:55", "in a direct message")
	out := decode[getThreadOut](t, f.works("get_thread", fmt.Sprintf(`{"message_id":%d}`, elsewhere.ID)))
	var texts []string
	for _, m := range out.Messages {
		texts = append(texts, m.Text)
	}
	if !slices.Equal(texts, []string{"middle", "after"}) {
		t.Errorf("got %q", texts)
	}
	f.refused("get_thread", fmt.Sprintf(`{"message_id":%d}`, direct.ID), "reach")
	for i := range 60 {
		f.ask(folder, chat, fmt.Sprint(i, strings.Repeat("é", 5000)))
	}
	out = decode[getThreadOut](t, f.works("get_thread", `{"message_id":OWN_MESSAGE,"around":50}`))
	if !out.Truncated || len(out.Messages) == 0 || len(out.Messages) > 50 {
		t.Errorf("%d messages, truncated %v", len(out.Messages), out.Truncated)
	}
}
