// Package names remembers how the people and channels of a workspace are called.
package names

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"arizuko/pkg/msg"
)

const (
	// most bounds the names that are kept.
	most = 10_000
	// lasts is how long a name is good, in case nobody says that it has changed; after a failure
	// Slack is not asked again for as long as unknownLasts.
	lasts        = 6 * time.Hour
	unknownLasts = time.Minute
	// askMost bounds one question, and questionsMost how many there are about one event: it waits to
	// be acknowledged.
	askMost       = 2 * time.Second
	questionsMost = 20
)

// Book holds the names. It is safe for concurrent use.
type Book struct {
	api *slack.Client
	now func() time.Time

	mu    sync.Mutex
	known map[string]named // by id
}

type named struct {
	name  string       // "" if nobody knows
	kind  msg.ChatKind // of a channel
	until time.Time
}

// New makes a book that asks Slack for what it does not know.
func New(api *slack.Client, now func() time.Time) *Book {
	return &Book{api: api, now: now, known: map[string]named{}}
}

// For gives the names that are in an event, for no longer than ctx.
func (b *Book) For(ctx context.Context) *Names { return &Names{Book: b, ctx: ctx} }

// Forget has Slack be asked for a name again.
func (b *Book) Forget(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, id)
}

// Names are those of a Book that are in one event. It is not safe for concurrent use.
type Names struct {
	*Book
	ctx       context.Context
	questions int // so far
}

// of looks a name up, and asks for it where it is not known.
func (n *Names) of(id string, ask func(context.Context, string) (named, error)) named {
	b := n.Book
	b.mu.Lock()
	found, ok := b.known[id]
	b.mu.Unlock()
	if ok && b.now().Before(found.until) || id == "" || n.questions == questionsMost {
		return found
	}
	n.questions++
	ctx, cancel := context.WithTimeout(n.ctx, askMost)
	defer cancel()
	fresh, err := ask(ctx, id)
	fresh.until = b.now().Add(lasts)
	if err != nil { // better the old name than none
		fresh = named{name: found.name, kind: found.kind, until: b.now().Add(unknownLasts)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) >= most {
		clear(b.known)
	}
	b.known[id] = fresh
	return fresh
}

// User is the name of a user or bot, "" if nobody knows.
func (n *Names) User(id string) string {
	if strings.HasPrefix(id, "B") {
		return n.of(id, n.askBot).name
	}
	return n.of(id, n.askUser).name
}

// Chat is what a channel is, with its title; the kind is "" if nobody knows.
func (n *Names) Chat(channel string) (msg.ChatKind, string) {
	found := n.of(channel, n.askChat)
	return found.kind, found.name
}

func (n *Names) askUser(ctx context.Context, id string) (named, error) {
	u, err := n.api.GetUserInfoContext(ctx, id)
	if err != nil {
		return named{}, err
	}
	return named{name: cmp.Or(u.Profile.DisplayName, u.RealName, u.Profile.RealName, u.Name)}, nil
}

func (n *Names) askBot(ctx context.Context, id string) (named, error) {
	bot, err := n.api.GetBotInfoContext(ctx, slack.GetBotInfoParameters{Bot: id})
	if err != nil {
		return named{}, err
	}
	return named{name: bot.Name}, nil
}

func (n *Names) askChat(ctx context.Context, id string) (named, error) {
	c, err := n.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
	switch {
	case err != nil:
		return named{}, err
	case c.IsIM:
		return named{name: n.User(c.User), kind: msg.ChatDM}, nil
	case c.IsMpIM:
		return named{name: c.Name, kind: msg.ChatGroup}, nil
	}
	return named{name: "#" + c.Name, kind: msg.ChatChannel}, nil
}
