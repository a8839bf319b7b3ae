package turncontext

import (
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// TestRead_QuotedPosts_AreInTheReplyChain has prompts of a message that answers a post from before the bot
// was in the chat: that of a user, with a photo and a selected part, and one of the bot itself.
func TestRead_QuotedPosts_AreInTheReplyChain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(post, answer *msg.Message){
		"a_user": func(post, answer *msg.Message) {
			post.Attachments = []msg.Attachment{{Name: "plan.jpg", MIME: "image/jpeg", Size: 5, Ref: "r"}}
			post.Content, answer.Quote = "the <plan> & more", "<plan>"
		},
		"a_photo": func(post, _ *msg.Message) {
			post.Attachments = []msg.Attachment{{Name: "plan.jpg", MIME: "image/jpeg", Size: 5, Path: "media/202611/2-0-plan.jpg"}}
		},
		"the_bot": func(post, _ *msg.Message) { post.Sender, post.SenderName, post.IsBot = "telegram:1000", "ari", true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
			f.say("Ann", "p1", "", "shall we begin?")
			post, answer := f.row("Bob", "old", "older", "what was decided"), f.row("Ann", "new", "old", "@ari what about this?")
			change(post, answer)
			f.write(func(tx *store.Tx) error {
				_, err := rows.PutQuoted(tx, post)
				return err
			})
			golden.Compare(t, filepath.Join("testdata", "quoted_"+name+".txt"), f.prompt(f.turn(false, answer)))
		})
	}
}

func TestWindow_QuotedPost_IsALineOfItsThread(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
	post := f.row("Bob", "old", "", "what was decided")
	f.write(func(tx *store.Tx) error {
		_, err := rows.PutQuoted(tx, post)
		return err
	})
	f.say("Ann", "p1", "old", "was it?")
	golden.Compare(t, filepath.Join("testdata", "quoted_window.txt"), f.prompt(f.turn(false, f.row("Carol", "p2", "", "hi"))))
}

// The files of observed rows are not in the group's folder: a path would lead nowhere.
func TestRead_ObservedFiles_HaveNoPath(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "telegram:-1", msg.ChatGroup, "")
	m := f.row("Dan", "", "", "the log")
	m.ChatJID, m.Attachments = "discord:5", []msg.Attachment{{Name: "log.txt", MIME: "text/plain", Size: 5, Path: "media/202611/3-0-log.txt"}}
	f.put(m, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve})
	text := f.prompt(f.turn(false, f.row("Ann", "new", "", "hi")))
	if !strings.Contains(text, `name="log.txt"`) || strings.Contains(text, "media/") {
		t.Error(text)
	}
}
