package platforms

import (
	"fmt"
	"testing"

	"arizuko/deploy/e2e/chatsim"
)

// TestAGroupBecomesASupergroup has it do so between a question and its answer.
func TestAGroupBecomesASupergroup(t *testing.T) {
	t.Parallel()
	w := chatsim.NewTelegram(chatsim.Size{}, telegramOptions())
	f := start(t, w)
	alice := w.User("Alice", "alice")
	group := w.Group("Team", alice)
	group.AddBot(alice)
	group.Say(alice, "@"+w.Me().Username+" slow 1 before")
	f.running(chatsim.Conversation{Chat: fmt.Sprintf("telegram:%d", group.ChatID)})
	super := group.Migrate(alice)
	there := chatsim.Conversation{Chat: fmt.Sprintf("telegram:%d", super.ChatID)}
	f.answered("slow 1 before", there, f.about.Group)
	super.Say(alice, "and after?")
	f.answered("and after?", there, f.about.Group)
	f.onceEach([]string{"slow 1 before", "and after?"})
}
