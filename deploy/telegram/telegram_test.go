package telegram

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	fake "arizuko/pkg/fakeplatform/telegram"
)

func TestFromAMentionToAnEngagedTopic(t *testing.T) {
	t.Parallel()
	r := start(t)
	group := r.Supergroup("Team", r.alice)
	group.AddBot(r.alice)
	group.Say(r.alice, "good morning")
	call := group.Say(r.alice, "@"+r.Me().Username+" what broke?")
	answer := r.answer("what broke?")
	if answer.ChatID != group.ChatID || answer.ReplyTo != call.ID {
		t.Errorf("answered in %d, to %d", answer.ChatID, answer.ReplyTo)
	}
	group.Say(r.alice, "and who did it?")
	r.answer("and who did it?")

	forum := r.Forum("Forum", r.alice)
	forum.AddBot(r.alice)
	topic := forum.Topic(r.alice, "Deploys")
	topic.Say(r.alice, "@"+r.Me().Username+" ship it")
	if answer := r.answer("ship it"); answer.ThreadID != topic.ThreadID || !strings.Contains(answer.Text, "surface telegram-topic") {
		t.Errorf("answered in topic %d: %s", answer.ThreadID, answer.Text)
	}
	topic.Say(r.alice, "how far?")
	if answer := r.answer("how far?"); answer.ThreadID != topic.ThreadID {
		t.Errorf("answered in topic %d", answer.ThreadID)
	}
	forum.Say(r.alice, "lunch?")
	r.until("what is said beside the topic is only heard", func() bool {
		return r.value(`SELECT disposition || '/' || reason FROM messages WHERE content = 'lunch?'`) == "observed/route_observe"
	})
	typing := func(c fake.Call) bool { return c.Method == "sendChatAction" && c.ThreadID == topic.ThreadID }
	topic.Say(r.alice, "slow 0.5 think")
	if _, err := r.Wait(r.ctx, typing); err != nil {
		t.Errorf("nobody is seen typing: %v", err)
	}
	r.answer("slow 0.5 think")
}

func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	r := start(t)
	dm := r.DM(r.alice)
	var told []string
	for n := range 30 {
		told = append(told, fmt.Sprintf("private %d", n))
		dm.Say(r.alice, told[n])
		if n%6 == 5 {
			r.ok(r.Kill("teled"))
			r.up("teled")
		}
	}
	r.onceEach(told)
	r.inOrder(dm.ChatID, "private ")
}

func TestAnErrorBehindADeliveryMarksTheCopy(t *testing.T) {
	t.Parallel()
	r := start(t)
	dm := r.DM(r.alice)
	r.Fail(fake.Fault{Method: "sendMessage", Status: 502, After: true})
	dm.Say(r.alice, "once")
	r.until("a marked copy has arrived", func() bool {
		plain, marked := r.copies("once")
		return plain == 1 && marked == 1
	})
	r.Fail(fake.Fault{Method: "sendMessage", RetryAfter: 1})
	dm.Say(r.alice, "patience")
	r.answer("patience")
	if plain, marked := r.copies("patience"); plain != 1 || marked != 0 {
		t.Errorf("after a 429 there are %d copies and %d marked ones", plain, marked)
	}
}

func TestWhoHasBlockedTheBotHoldsUpNobody(t *testing.T) {
	t.Parallel()
	r := start(t)
	bob := r.User("Bob", "bob")
	theirs := r.DM(bob)
	theirs.Say(bob, "slow 0.5 are you there?")
	r.until("it is being answered", func() bool {
		return r.value(`SELECT count(*) FROM turns WHERE state = 'running'`) == "1"
	})
	r.Block(bob)
	r.DM(r.alice).Say(r.alice, "hello")
	r.answer("hello")
	r.until("the other answer has failed for good", func() bool {
		return strings.HasPrefix(r.value(`SELECT d.error_class || ' ' || d.error FROM deliveries d JOIN messages m ON m.id = d.message_id
			WHERE m.out_state = 'failed'`), "permanent")
	})
}

func TestFilesComeIn(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.DM(r.alice).Document(r.alice, "../plan.txt", []byte("one, two"), "look at this")
	r.answer("look at this")
	path := r.value(`SELECT attachments ->> '$[0].path' FROM messages WHERE content = 'look at this'`)
	data, err := os.ReadFile(filepath.Join(r.Data, path))
	if err != nil || string(data) != "one, two" || !strings.HasPrefix(path, "media/") {
		t.Errorf("the file is at %q: %q, %v", path, data, err)
	}
}

func TestABadTokenIsSaidOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.ok(r.Kill("teled"))
	r.ok(r.Instance.Start("teled", "TELEGRAM_BOT_TOKEN=1:wrong"))
	r.until("the credentials are known to be bad", func() bool {
		return r.value(`SELECT connection FROM daemons WHERE name = 'teled'`) == "bad_credentials"
	})
	log, err := r.Log("teled")
	r.ok(err)
	if strings.Contains(log, "1:wrong") || strings.Count(log, "TELEGRAM_BOT_TOKEN") != 1 {
		t.Errorf("it logs\n%s", log)
	}
}

func TestAGroupBecomesASupergroup(t *testing.T) {
	t.Parallel()
	r := start(t)
	group := r.Group("Team", r.alice)
	group.AddBot(r.alice)
	mention := "@" + r.Me().Username + " "
	group.Say(r.alice, mention+"slow 1 before")
	r.until("it is being answered", func() bool {
		return r.value(`SELECT count(*) FROM turns WHERE state = 'running'`) == "1"
	})
	super := group.Migrate(r.alice)
	if c := r.answer("slow 1 before"); c.ChatID != super.ChatID {
		t.Errorf("answered in %d, not %d", c.ChatID, super.ChatID)
	}
	super.Say(r.alice, "and after?")
	if c := r.answer("and after?"); c.ChatID != super.ChatID {
		t.Errorf("answered in %d, not %d", c.ChatID, super.ChatID)
	}
}
