package scenarios

import (
	"fmt"
	"testing"
	"time"

	"arizuko/pkg/msg"
)

func TestAMentionAmongChatterIsAnswered(t *testing.T) {
	s := listening(t, Options{})
	together := s.Put(
		msg.Message{ChatJID: "telegram:-5", Content: "chatter"},
		msg.Message{ChatJID: "telegram:-5", Verb: msg.VerbMention, Content: "what is up?"},
		msg.Message{ChatJID: "telegram:-5", Content: "tell me"},
	)
	s.Becomes(together[0], msg.Observed, msg.ReasonRouteObserve)
	s.Becomes(together[1], msg.Routed, msg.ReasonRoute)
	s.Becomes(together[2], msg.Routed, msg.ReasonEngaged)
	s.HasHeard("telegram:-5", "what is up?", "tell me")
	if out := s.Out("telegram:-5"); len(out) != 1 || out[0].ReplyToID != s.Row(together[1]).PlatformID {
		t.Errorf("answers: %+v", out)
	}
}

func TestAQuestionFollowedByPingIsAnswered(t *testing.T) {
	s := start(t, Options{})
	rows := s.Put(texts("telegram:5", "a question", "/ping", "another")...)
	s.Replies(rows[1], "pong")
	s.Becomes(rows[0], msg.Routed, msg.ReasonRoute)
	s.HasHeard("telegram:5", "a question", "another")
}

func TestTwoRowsOfOneMillisecond(t *testing.T) {
	s := start(t, Options{})
	now := time.Now().UnixMilli()
	row := func(text string) msg.Message {
		return msg.Message{ChatJID: "telegram:5", Content: text, Timestamp: now, ReceivedAt: now}
	}
	s.Put(row("one"))
	s.Put(row("two"))
	s.Settle()
	s.Put(row("three"), row("four"))
	s.HasHeard("telegram:5", "one", "two", "three", "four")
}

func TestARowOlderThanTheLastOne(t *testing.T) {
	s := start(t, Options{})
	now := time.Now().UnixMilli()
	s.Answer(s.Put(msg.Message{ChatJID: "telegram:5", Content: "first", Timestamp: now})[0])
	s.Answer(s.Put(msg.Message{ChatJID: "telegram:5", Content: "late", Timestamp: now - 3_600_000})[0])
	s.HasHeard("telegram:5", "first", "late")
}

func TestARowByHandWithoutAPoke(t *testing.T) {
	s := start(t, Options{})
	s.Becomes(s.PutSilently(texts("telegram:5", "nobody pokes")...)[0], msg.Routed, msg.ReasonRoute)
	s.HasHeard("telegram:5", "nobody pokes")
}

func TestARowThatClaimsToComeFromTheFuture(t *testing.T) {
	s := start(t, Options{})
	ahead := time.Now().Add(24 * time.Hour).UnixMilli()
	s.Put(msg.Message{ChatJID: "telegram:5", Content: "clocks differ", ReceivedAt: ahead})
	s.HasHeard("telegram:5", "clocks differ")
}

func TestABacklogOfTenThousandRowsBeforeStart(t *testing.T) {
	t.Parallel()
	s := New(t, Options{})
	s.Migrate()
	s.Exec(`INSERT INTO registered_groups (folder, created_at) VALUES ('main', 0)`)
	s.Exec(`INSERT INTO routes (match, target) VALUES ('platform=telegram', 'main')`)
	var rows []msg.Message
	sent := map[string][]string{}
	for i := range 10_000 {
		chat := fmt.Sprintf("telegram:%d", 1+i%3*i%7) // some chats with much, some with little
		text := fmt.Sprintf("message %d", i)
		rows = append(rows, msg.Message{ChatJID: chat, Content: text})
		sent[chat] = append(sent[chat], text)
	}
	s.PutSilently(rows...)
	s.StartDaemon(Routd)
	s.StartDaemon(Gated)
	for chat, texts := range sent {
		s.HasHeard(chat, texts...)
	}
}

func TestTwentyChatsOfTwentyRows(t *testing.T) {
	s := start(t, Options{})
	sent := map[string][]string{}
	for i := range 20 {
		for c := range 20 {
			chat, text := fmt.Sprintf("telegram:%d", 100+c), fmt.Sprintf("%d of chat %d", i, c)
			s.Say(chat, text)
			sent[chat] = append(sent[chat], text)
		}
	}
	for chat, texts := range sent {
		s.HasHeard(chat, texts...)
	}
}

func TestARowOldOnArrivalIsReadNotAnswered(t *testing.T) {
	s := start(t, Options{})
	now := time.Now()
	old := func(chat, text string) msg.Message {
		return msg.Message{ChatJID: chat, Content: text, ReceivedAt: now.UnixMilli(), Timestamp: now.Add(-25 * time.Hour).UnixMilli()}
	}
	for _, id := range s.Put(old("telegram:5", "one"), old("telegram:5", "two"), old("telegram:6", "three")) {
		s.Becomes(id, msg.Observed, msg.ReasonStale)
	}
	s.Becomes(s.Put(old("telegram:5", "four"))[0], msg.Observed, msg.ReasonStale)
	for _, chat := range []string{"telegram:5", "telegram:6"} {
		if out := s.Out(chat); len(out) != 1 || out[0].Source != msg.SourceNotice {
			t.Errorf("%s was told %d times: %+v", chat, len(out), out)
		}
	}
	s.Say("telegram:5", "still there?")
	s.HasHeard("telegram:5", "still there?")
}

func TestChatterBetweenOldMentionsBringsNoSecondNotice(t *testing.T) {
	s := listening(t, Options{})
	now := time.Now()
	old := func(verb, text string) msg.Message {
		return msg.Message{ChatJID: "telegram:-5", Verb: verb, Content: text,
			ReceivedAt: now.UnixMilli(), Timestamp: now.Add(-25 * time.Hour).UnixMilli()}
	}
	s.Becomes(s.Put(old(msg.VerbMention, "one"))[0], msg.Observed, msg.ReasonStale)
	s.Becomes(s.Put(old(msg.VerbMessage, "chatter"))[0], msg.Observed, msg.ReasonRouteObserve)
	s.Becomes(s.Put(old(msg.VerbMention, "two"))[0], msg.Observed, msg.ReasonStale)
	if out := s.Out("telegram:-5"); len(out) != 1 {
		t.Errorf("told %d times that we were offline", len(out))
	}
}

func TestRowsWithPendingFilesHoldTheirChat(t *testing.T) {
	s := start(t, Options{})
	rows := s.Put(
		msg.Message{ChatJID: "telegram:5", Content: "look at this", PendingFiles: 2},
		msg.Message{ChatJID: "telegram:5", Content: "what is it?"},
		msg.Message{ChatJID: "telegram:6", Content: "another chat"},
	)
	s.Answer(rows[2])
	s.Replies(s.Say("telegram:5", "/ping"), "pong")
	for _, id := range rows[:2] {
		if m := s.Row(id); m.Disposition != "" {
			t.Errorf("%q did not wait: %s", m.Content, m.Disposition)
		}
	}
	s.Exec(`UPDATE messages SET pending_files = 0, attachments = '[{"path":"","name":"cat.jpg","mime":"image/jpeg","size":0,"error":"too large"}]' WHERE id = ?`, rows[0])
	s.HasHeard("telegram:5", "look at this", "what is it?")
}

func TestPendingFilesAreWaitedForAMinute(t *testing.T) {
	s := start(t, Options{})
	past := time.Now().Add(-2 * time.Minute).UnixMilli()
	s.Put(msg.Message{ChatJID: "telegram:5", Content: "its files never came", PendingFiles: 1, ReceivedAt: past})
	s.HasHeard("telegram:5", "its files never came")
}
