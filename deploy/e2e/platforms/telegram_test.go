package platforms

import (
	"fmt"
	"testing"

	"arizuko/deploy/e2e/chatsim"
)

// The migration happens between a question and its answer.
func TestTelegram_GroupBecomesSupergroup_AnsweredThere(t *testing.T) {
	t.Parallel()
	w := chatsim.NewTelegram(chatsim.Size{}, telegramOptions())
	f := start(t, w)
	alice := w.User("Alice", "alice")
	group := w.Group("Team", alice)
	group.AddBot(alice)
	group.Say(alice, "@"+w.Me().Username+" slow 1 before")
	f.waitRunning(chatsim.Conversation{Chat: fmt.Sprintf("telegram:%d", group.ChatID)})
	super := group.Migrate(alice)
	there := chatsim.Conversation{Chat: fmt.Sprintf("telegram:%d", super.ChatID)}
	f.wantAnswer("slow 1 before", there, f.info.Group)
	super.Say(alice, "and after?")
	f.wantAnswer("and after?", there, f.info.Group)
	f.wantOneAnswerEach([]string{"slow 1 before", "and after?"})
}
