package events

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
	// maxNames bounds the names that are kept.
	maxNames = 10_000
	// nameLifetime is how long a name is used, in case Slack does not report a change. After a failure
	// Slack is not asked again for failureLifetime.
	nameLifetime    = 6 * time.Hour
	failureLifetime = time.Minute
	// lookupTimeout bounds one lookup, and maxLookups how many there are for one event: the event has
	// to be acknowledged in time.
	lookupTimeout = 2 * time.Second
	maxLookups    = 20
)

// Names caches the names of users and channels. It is safe for concurrent use.
type Names struct {
	api *slack.Client
	now func() time.Time

	mu    sync.Mutex
	known map[string]named // by id
}

type named struct {
	name  string       // "" if unknown
	kind  msg.ChatKind // of a channel
	until time.Time
}

// NewNames makes a cache that asks Slack for unknown names.
func NewNames(api *slack.Client, now func() time.Time) *Names {
	return &Names{api: api, now: now, known: map[string]named{}}
}

// For returns the names of one event. Its lookups end with ctx.
func (n *Names) For(ctx context.Context) *EventNames { return &EventNames{cache: n, ctx: ctx} }

// Forget makes the next use of a name ask Slack again.
func (n *Names) Forget(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, id)
}

// EventNames looks up the names of one event. It is not safe for concurrent use.
type EventNames struct {
	cache   *Names
	ctx     context.Context //nolint:containedctx // it lives as long as the event
	lookups int             // so far
}

// of returns a name, and asks Slack if it is not known.
func (n *EventNames) of(id string, ask func(context.Context, string) (named, error)) named {
	b := n.cache
	b.mu.Lock()
	found, ok := b.known[id]
	b.mu.Unlock()
	if ok && b.now().Before(found.until) || id == "" || n.lookups == maxLookups {
		return found
	}
	n.lookups++
	ctx, cancel := context.WithTimeout(n.ctx, lookupTimeout)
	defer cancel()
	fresh, err := ask(ctx, id)
	fresh.until = b.now().Add(nameLifetime)
	if err != nil { // the old name is better than none
		fresh = named{name: found.name, kind: found.kind, until: b.now().Add(failureLifetime)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) >= maxNames {
		clear(b.known)
	}
	b.known[id] = fresh
	return fresh
}

// User is the name of a user or bot, "" if unknown.
func (n *EventNames) User(id string) string {
	if strings.HasPrefix(id, "B") {
		return n.of(id, n.askBot).name
	}
	return n.of(id, n.askUser).name
}

// Chat is the kind and title of a channel; the kind is "" if unknown.
func (n *EventNames) Chat(channel string) (msg.ChatKind, string) {
	found := n.of(channel, n.askChat)
	return found.kind, found.name
}

func (n *EventNames) askUser(ctx context.Context, id string) (named, error) {
	u, err := n.cache.api.GetUserInfoContext(ctx, id)
	if err != nil {
		return named{}, err
	}
	return named{name: cmp.Or(u.Profile.DisplayName, u.RealName, u.Profile.RealName, u.Name)}, nil
}

func (n *EventNames) askBot(ctx context.Context, id string) (named, error) {
	bot, err := n.cache.api.GetBotInfoContext(ctx, slack.GetBotInfoParameters{Bot: id})
	if err != nil {
		return named{}, err
	}
	return named{name: bot.Name}, nil
}

func (n *EventNames) askChat(ctx context.Context, id string) (named, error) {
	c, err := n.cache.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
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
