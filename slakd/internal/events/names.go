package events

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"golang.org/x/sync/singleflight"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/slakd/internal/slackapi"
)

const (
	// maxNames bounds the names that are kept.
	maxNames = 10_000
	// nameLifetime is how long a name is used, in case Slack does not report a change. After a failure
	// Slack is not asked again for failureLifetime.
	nameLifetime    = 6 * time.Hour
	failureLifetime = time.Minute
	// lookupTimeout bounds one lookup, maxLookups how many one event starts, and eventTimeout how long all
	// of them delay it: it has to be acknowledged within 3 seconds. Those that take longer fill the cache.
	lookupTimeout = 10 * time.Second
	maxLookups    = 20
	eventTimeout  = time.Second
	// maxTries bounds the lookups of one name that rate limits refuse, for messages that need no
	// acknowledgement.
	maxTries = 5
)

// Names caches the names of users and channels. It is safe for concurrent use.
type Names struct {
	api      *slack.Client
	now      func() time.Time
	patience time.Duration // see Options
	lookups  singleflight.Group

	mu      sync.Mutex
	team    string               // the bot's workspace: users of others are no admins of it
	known   map[string]named     // by id
	refused map[string]time.Time // until when Slack refuses a method for its rate
}

type named struct {
	name   string       // "" if unknown
	kind   msg.ChatKind // of a channel
	person bool         // a user who is no bot
	admin  bool         // of the workspace, or its owner
	until  time.Time
}

// NewNames makes a cache that asks Slack for unknown names.
func NewNames(api *slack.Client, now func() time.Time) *Names {
	return &Names{api: api, now: now, known: map[string]named{}, refused: map[string]time.Time{}}
}

// SetTeam sets the id of the bot's workspace.
func (n *Names) SetTeam(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.team = id
}

// For returns the names of one event that waits for an acknowledgement. A name that Slack does not return
// in time is unknown.
func (n *Names) For(ctx context.Context) *EventNames {
	return &EventNames{cache: n, ctx: ctx, until: time.Now().Add(eventTimeout + n.patience), left: maxLookups}
}

// Patiently returns the names of a message that nothing waits for. Rate limits are obeyed.
func (n *Names) Patiently(ctx context.Context) *EventNames {
	return &EventNames{cache: n, ctx: ctx, left: maxTries * maxLookups, patient: true}
}

// Forget makes the next use of a name ask Slack again.
func (n *Names) Forget(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, id)
}

// fresh returns a name that is known.
func (n *Names) fresh(id string) (found named, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found = n.known[id]
	return found, n.now().Before(found.until)
}

// ask looks a name up, once for all who ask meanwhile. When the lookup has ended, the cache has the result.
func (n *Names) ask(ctx context.Context, id string, how lookup) (ended <-chan singleflight.Result) {
	return n.lookups.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		result, err := how.call(ctx, id)
		n.learn(how, id, result, err)
		return nil, nil
	})
}

// learn keeps the result of a lookup. After one that was refused for its rate the old name stays, and the method is not
// called for a time.
func (n *Names) learn(how lookup, id string, fresh named, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if wait, limited := slackapi.RetryAfter(err); limited {
		n.refused[how.method] = n.now().Add(wait)
		return
	}
	fresh.until = n.now().Add(nameLifetime)
	if err != nil { // the old name is better than none
		fresh = n.known[id]
		fresh.until = n.now().Add(failureLifetime)
	}
	if len(n.known) >= maxNames {
		clear(n.known)
	}
	n.known[id] = fresh
}

// wait is how long Slack refuses a method for its rate.
func (n *Names) wait(method string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refused[method].Sub(n.now())
}

// lookup asks Slack for a name.
type lookup struct {
	method string
	call   func(ctx context.Context, id string) (named, error)
}

func (n *Names) users() lookup { return lookup{"users.info", n.askUser} }
func (n *Names) bots() lookup  { return lookup{"bots.info", n.askBot} }
func (n *Names) chats() lookup { return lookup{"conversations.info", n.askChat} }

// EventNames looks up the names of one event. It is not safe for concurrent use.
type EventNames struct {
	cache   *Names
	ctx     context.Context //nolint:containedctx // it lives as long as the event
	until   time.Time       // later lookups are not waited for, unless patient
	left    int             // how many lookups may be started
	patient bool
}

// of returns a name, and asks Slack if it is not known.
func (n *EventNames) of(id string, how lookup) named {
	for {
		found, ok := n.cache.fresh(id)
		if ok || id == "" || n.left == 0 {
			return found
		}
		if wait := n.cache.wait(how.method); wait > 0 {
			if n.patient {
				adapter.Pause(n.ctx, wait)
			}
			if !n.patient || n.ctx.Err() != nil {
				return found
			}
		}
		n.left--
		if !n.await(n.cache.ask(n.ctx, id, how)) {
			return found
		}
		if found, ok = n.cache.fresh(id); ok || !n.patient {
			return found
		}
	}
}

// await waits for a lookup, and reports whether it has ended in time.
func (n *EventNames) await(ended <-chan singleflight.Result) bool {
	var late <-chan time.Time
	if !n.patient {
		timer := time.NewTimer(time.Until(n.until))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-ended:
		return true
	case <-late:
	case <-n.ctx.Done():
	}
	return false
}

// User is the name of a user or bot, "" if unknown.
func (n *EventNames) User(id string) string {
	if strings.HasPrefix(id, "B") {
		return n.of(id, n.cache.bots()).name
	}
	return n.of(id, n.cache.users()).name
}

// Person reports whether a user is known to be no bot.
func (n *EventNames) Person(id string) bool { return n.of(id, n.cache.users()).person }

// Admin reports whether a user is known to administer the workspace.
func (n *EventNames) Admin(id string) bool { return n.of(id, n.cache.users()).admin }

// Chat is the kind and title of a channel; the kind is "" if unknown.
func (n *EventNames) Chat(channel string) (msg.ChatKind, string) {
	found := n.of(channel, n.cache.chats())
	return found.kind, found.name
}

func (n *Names) askUser(ctx context.Context, id string) (named, error) {
	u, err := n.api.GetUserInfoContext(ctx, id)
	if err != nil {
		return named{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return named{
		name:   cmp.Or(u.Profile.DisplayName, u.RealName, u.Profile.RealName, u.Name),
		person: !u.IsBot, admin: u.TeamID == n.team && (u.IsAdmin || u.IsOwner || u.IsPrimaryOwner),
	}, nil
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
		user, known := n.fresh(c.User)
		if !known {
			user, err = n.askUser(ctx, c.User)
			n.learn(n.users(), c.User, user, err)
		}
		return named{name: user.name, kind: msg.ChatDM}, nil
	case c.IsMpIM:
		return named{name: c.Name, kind: msg.ChatGroup}, nil
	}
	return named{name: "#" + c.Name, kind: msg.ChatChannel}, nil
}
