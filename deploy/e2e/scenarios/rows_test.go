package scenarios

import (
	"fmt"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

func TestRows_MentionAmongOthers_IsAnswered(t *testing.T) {
	f := startOnMention(t, harness.Options{})
	together := f.Put(
		msg.Message{ChatJID: "telegram:-5", Content: "chatter"},
		msg.Message{ChatJID: "telegram:-5", Verb: msg.VerbMention, Content: "what is up?"},
		msg.Message{ChatJID: "telegram:-5", Content: "tell me"},
	)
	f.WantDecision(together[0], msg.Observed, msg.ReasonRouteObserve)
	f.WantDecision(together[1], msg.Routed, msg.ReasonRoute)
	f.WantDecision(together[2], msg.Routed, msg.ReasonEngaged)
	f.WantEchoes("telegram:-5", "what is up?", "tell me")
	if out := f.Outbound("telegram:-5"); len(out) != 1 || out[0].ReplyToID != f.Row(together[1]).PlatformID {
		t.Errorf("answers: %+v", out)
	}
}

func TestRows_QuestionBeforeCommand_IsAnswered(t *testing.T) {
	f := start(t, harness.Options{})
	rows := f.Put(texts("telegram:5", "a question", "/ping", "another")...)
	f.WantReply(rows[1], "pong")
	f.WantDecision(rows[0], msg.Routed, msg.ReasonRoute)
	f.WantEchoes("telegram:5", "a question", "another")
}

func TestRows_SameMillisecond_BothAnswered(t *testing.T) {
	f := start(t, harness.Options{})
	now := time.Now().UnixMilli()
	row := func(text string) msg.Message {
		return msg.Message{ChatJID: "telegram:5", Content: text, Timestamp: now, ReceivedAt: now}
	}
	f.Put(row("one"))
	f.Put(row("two"))
	f.WaitIdle()
	f.Put(row("three"), row("four"))
	f.WantEchoes("telegram:5", "one", "two", "three", "four")
}

func TestRows_OlderTimestamp_IsAnswered(t *testing.T) {
	f := start(t, harness.Options{})
	now := time.Now().UnixMilli()
	f.Answer(f.Put(msg.Message{ChatJID: "telegram:5", Content: "first", Timestamp: now})[0])
	f.Answer(f.Put(msg.Message{ChatJID: "telegram:5", Content: "late", Timestamp: now - 3_600_000})[0])
	f.WantEchoes("telegram:5", "first", "late")
}

func TestRows_WithoutPoke_AreFoundByPolling(t *testing.T) {
	f := start(t, harness.Options{})
	f.WantDecision(f.PutWithoutPoke(texts("telegram:5", "no poke")...)[0], msg.Routed, msg.ReasonRoute)
	f.WantEchoes("telegram:5", "no poke")
}

func TestRows_TimestampInFuture_IsAnswered(t *testing.T) {
	f := start(t, harness.Options{})
	ahead := time.Now().Add(24 * time.Hour).UnixMilli()
	f.Put(msg.Message{ChatJID: "telegram:5", Content: "clocks differ", ReceivedAt: ahead})
	f.WantEchoes("telegram:5", "clocks differ")
}

func TestRows_BacklogOfTenThousand_AnsweredInOrder(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	f := harness.NewFixture(t, programs, harness.Options{})
	f.Migrate()
	f.Exec(`INSERT INTO registered_groups (folder, config) VALUES ('main', '{"rate":0}')`)
	f.Exec(`INSERT INTO routes (match, target) VALUES ('platform=telegram', 'main')`)
	var rows []msg.Message
	sent := map[string][]string{}
	for i := range 10_000 {
		chat := fmt.Sprintf("telegram:%d", 1+i%3*i%7) // chats with different numbers of rows
		text := fmt.Sprintf("message %d", i)
		rows = append(rows, msg.Message{ChatJID: chat, Content: text})
		sent[chat] = append(sent[chat], text)
	}
	f.PutWithoutPoke(rows...)
	f.StartDaemon(harness.Routd)
	f.StartDaemon(harness.Gated)
	for chat, texts := range sent {
		f.WantEchoes(chat, texts...)
	}
}

func TestRows_TwentyChats_AnsweredInOrder(t *testing.T) {
	f := start(t, harness.Options{})
	sent := map[string][]string{}
	for i := range 20 {
		for c := range 20 {
			chat, text := fmt.Sprintf("telegram:%d", 100+c), fmt.Sprintf("%d of chat %d", i, c)
			f.Say(chat, text)
			sent[chat] = append(sent[chat], text)
		}
	}
	for chat, texts := range sent {
		f.WantEchoes(chat, texts...)
	}
}

func TestStale_OldOnArrival_IsObservedWithOneNotice(t *testing.T) {
	f := start(t, harness.Options{})
	now := time.Now()
	old := func(chat, text string) msg.Message {
		return msg.Message{ChatJID: chat, Content: text, ReceivedAt: now.UnixMilli(), Timestamp: now.Add(-25 * time.Hour).UnixMilli()}
	}
	for _, id := range f.Put(old("telegram:5", "one"), old("telegram:5", "two"), old("telegram:6", "three")) {
		f.WantDecision(id, msg.Observed, msg.ReasonStale)
	}
	f.WantDecision(f.Put(old("telegram:5", "four"))[0], msg.Observed, msg.ReasonStale)
	for _, chat := range []string{"telegram:5", "telegram:6"} {
		if out := f.Outbound(chat); len(out) != 1 || out[0].Source != msg.SourceNotice {
			t.Errorf("%s has %d notices, want 1: %+v", chat, len(out), out)
		}
	}
	f.Say("telegram:5", "still there?")
	f.WantEchoes("telegram:5", "still there?")
}

func TestStale_MessageBetweenOldMentions_NoSecondNotice(t *testing.T) {
	f := startOnMention(t, harness.Options{})
	now := time.Now()
	old := func(verb, text string) msg.Message {
		return msg.Message{ChatJID: "telegram:-5", Verb: verb, Content: text,
			ReceivedAt: now.UnixMilli(), Timestamp: now.Add(-25 * time.Hour).UnixMilli()}
	}
	f.WantDecision(f.Put(old(msg.VerbMention, "one"))[0], msg.Observed, msg.ReasonStale)
	f.WantDecision(f.Put(old(msg.VerbMessage, "chatter"))[0], msg.Observed, msg.ReasonRouteObserve)
	f.WantDecision(f.Put(old(msg.VerbMention, "two"))[0], msg.Observed, msg.ReasonStale)
	if out := f.Outbound("telegram:-5"); len(out) != 1 {
		t.Errorf("%d notices, want 1", len(out))
	}
}

func TestPendingFiles_OfRoutedRows_AreWanted(t *testing.T) {
	f := start(t, harness.Options{})
	rows := f.Put(
		msg.Message{ChatJID: "telegram:5", Content: "look at this", PendingFiles: 2},
		msg.Message{ChatJID: "telegram:6", Content: "another chat"},
	)
	f.WantDecision(rows[0], msg.Routed, msg.ReasonRoute)
	f.Answer(rows[1])
	if !f.Row(rows[0]).FilesWanted || f.Row(rows[1]).FilesWanted {
		t.Error("the files of the wrong row are wanted")
	}
	if out := f.Outbound("telegram:5"); len(out) != 0 {
		t.Errorf("it is answered without its files: %+v", out)
	}
	f.Exec(`UPDATE messages SET pending_files = 0, attachments = '[{"path":"","name":"cat.jpg","mime":"image/jpeg","size":0,"error":"too large"}]' WHERE id = ?`, rows[0])
	f.Answer(f.Say("telegram:6", "a poke"))
	f.WantEchoes("telegram:5", "look at this")
}
