package pages

import (
	"cmp"
	"fmt"
	"strings"

	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// ChatList is a part of a list of chats, the one seen last first.
type ChatList struct {
	Platforms      []string
	Platform, Text string // the filters
	Lines          []ChatRow
	Next           string // address of what follows, "" for nothing
	Bounded        bool   // the page ends because as many chats were looked at as one page may
	Later          bool   // it is not the beginning
	Now            int64
}

// Filtered reports whether a filter is set.
func (l ChatList) Filtered() bool { return l.Platform != "" || l.Text != "" }

// ChatRow is one chat.
type ChatRow struct {
	rows.SeenChat
	Home   string          // the group that answers
	Open   int             // turns that are queued or running, at most 100
	Window rows.OpenWindow // that ends last, zero for none
	Spend  factrows.Spend  // in the last 30 days
}

// Name is the chat's title, else its address.
func (c ChatRow) Name() string { return cmp.Or(Line(c.Title), Line(c.JID)) }

// Account is the account of the platform, "" for the first.
func (c ChatRow) Account() string {
	_, account, _ := strings.Cut(c.Platform, "+")
	return Line(account)
}

// Access is the page of a sender's permissions in a chat.
type Access struct {
	Chat, Sender, Name, Thread string // the question
	Chats                      []rows.SeenChat
	Problem                    string           // why routd does not say
	Answer                     *routeapi.Access // nil before a question
	Titles                     Titles
	Operators                  Operators
	Groups                     []GroupRoles
	Next                       string // address of further groups, "" for none
}

// GroupRoles are a group's roles.
type GroupRoles struct {
	Folder string
	Roles  []groupconfig.RoleLine
}

// accessVerb words a kind of message.
func accessVerb(verb string) string {
	return cmp.Or(map[string]string{msg.VerbMessage: "A message", msg.VerbMention: "A mention of the bot",
		msg.VerbReply: "A reply to the bot"}[verb], Line(verb))
}

// accessOutcome words what happens to a message.
func accessOutcome(row routeapi.RowAccess) string {
	a := &row.Answer
	switch {
	case !row.Admitted:
		return fmt.Sprintf("is dropped: the role ask of %s does not list the sender", Line(a.Folder))
	case a.Action == routeapi.Trigger && row.Rate > 0:
		return fmt.Sprintf("starts a turn of %s, at most %d an hour", Line(a.Folder), row.Rate)
	case a.Action == routeapi.Trigger:
		return "starts a turn of " + Line(a.Folder)
	case a.Action == routeapi.Observe:
		return "is observed by " + Line(a.Folder) + ", which sees it with its next turn"
	case a.Action == routeapi.Builtin, a.Action == routeapi.Daemon:
		return "goes to " + Line(a.Target)
	}
	return "starts nothing"
}

// list is texts on one line.
func list(texts []string) string { return Line(strings.Join(texts, ", ")) }
