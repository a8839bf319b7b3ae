// Package status reports on the instance, or on one chat: which group answers there, which turns run
// and which daemons have problems. It reads rows alone: routd need not run.
package status

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
	"arizuko/pkg/store"
)

// minWaiting is the age from which an undecided row counts as waiting. Newer ones are being
// decided, the /status that asks is one of them; gated polls every 2 s at the latest.
const minWaiting = 5 * time.Second

// Status makes reports; everything is needed. It is safe for concurrent use.
type Status struct {
	Store *store.Store
	Base  config.Base
	Log   *slog.Logger
	Now   func() time.Time
}

// Where is the place that a report is about.
type Where struct {
	ChatJID  string // platform:room
	ThreadID string // the platform's thread, "" for the chat as a whole
	Topic    string // a message's own topic where there is no thread, as a tab of a web chat has; "" for none
	Spend    bool   // the report has the costs: an operator asks
	// Who asks, since routes may be for some senders. Without one it is, in a direct message, its user.
	Sender, SenderName string
}

// Report is the answer of /status. Without a chat, and where a chat has none of it, Group,
// Session, EngagedUntil and QueuePlace are nil.
type Report struct {
	Text         string   `json:"text"`             // all of it in words: at most a dozen lines
	Advice       string   `json:"advice,omitempty"` // for operators: how a chat without a group is connected to one
	Group        *string  `json:"group"`
	Topic        string   `json:"topic"`         // the effective topic, "" for the default one
	Session      *string  `json:"session"`       // that the next message continues
	EngagedUntil *int64   `json:"engaged_until"` // unix ms
	QueuePlace   *int     `json:"queue_place"`   // 0 while an agent works on it, 1 for the next in the queue
	Waiting      int      `json:"waiting"`       // inbound rows that wait for a decision
	Daemons      []Daemon `json:"daemons"`
}

// Daemon is what a report has of a daemon: reports go to chats.
type Daemon struct {
	Name        string            `json:"name"`
	Connection  daemon.Connection `json:"connection"`
	OK          bool              `json:"ok"`           // connected, with a recent heartbeat
	HeartbeatAt int64             `json:"heartbeat_at"` // unix ms
}

// reported are the daemons by name.
func reported(daemons facts.Daemons, now int64) []Daemon {
	all := make([]Daemon, 0, len(daemons)) // an empty list in JSON, never null
	for _, name := range slices.Sorted(maps.Keys(daemons)) {
		d := daemons[name]
		all = append(all, Daemon{name, d.State(), d.Trouble(now) == "", d.HeartbeatAt})
	}
	return all
}

// chat is the facts of a report on a chat.
type chat struct {
	Where
	now     int64
	daemons facts.Daemons
	info    msg.Chat // with the address alone while the chat is unknown
	group   string   // "" for none
	topic   string
	session string
	engaged msg.Engagement // zero while no group is engaged
	privacy bool           // the bot receives mentions and replies alone there
	work    work
	waiting factrows.Waiting
	unsent  factrows.Waiting
	spent   *spent
	request *factrows.Request // the pending one of a chat without a group, nil for none
}

// Chat reports on a chat, known or not.
func (s *Status) Chat(ctx context.Context, at Where) (Report, error) {
	c := chat{Where: at, now: s.now(), info: msg.Chat{JID: at.ChatJID}}
	if err := s.gather(ctx, &c); err != nil {
		return Report{}, err
	}
	return Report{
		Text: c.text(), Advice: c.advice(), Group: orNull(c.group), Topic: c.topic, Session: orNull(c.session),
		EngagedUntil: orNull(c.engaged.Until), QueuePlace: c.work.place, Waiting: c.waiting.Rows,
		Daemons: reported(c.daemons, c.now),
	}, nil
}

func (s *Status) gather(ctx context.Context, c *chat) error {
	r, late := s.Store.Reader, c.now-minWaiting.Milliseconds()
	return inOrder(
		func() error {
			known, err := r.Chat(ctx, c.ChatJID)
			if known != nil {
				c.info = *known
			}
			return err
		},
		func() (err error) { c.daemons, err = s.Daemons(ctx); return err },
		func() (err error) { c.waiting, err = factrows.Undecided(ctx, r, c.ChatJID, late); return err },
		func() (err error) { c.unsent, err = factrows.Unsent(ctx, r, c.ChatJID, late); return err },
		func() error {
			e, err := factrows.Engagement(ctx, r, c.ChatJID, msg.Place(c.ThreadID, c.Topic))
			if e.Open(c.now, c.info.StickyAt) {
				c.engaged = e.Engagement
			}
			return err
		},
		func() error {
			mode, err := r.DaemonCursor(ctx, msg.DaemonOf(c.ChatJID), msg.PrivacyMode)
			c.privacy = mode != "" && c.info.Kind == msg.ChatGroup
			return err
		},
		func() (err error) { c.group, err = s.home(ctx, c); return err },
		func() (err error) { c.topic, err = s.topic(ctx, c); return err },
		func() (err error) { c.session, err = factrows.Session(ctx, r, c.group, c.topic); return err },
		func() (err error) {
			if c.group == "" {
				c.request, err = factrows.PendingRequest(ctx, r, c.ChatJID)
			}
			return err
		},
		func() (err error) { c.work, err = s.work(ctx, c); return err },
		func() (err error) { c.spent, err = s.spentBy(ctx, c); return err },
	)
}

// inOrder calls functions up to the first that fails, and returns its error.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// spent is the usage of agents.
type spent struct {
	today factrows.Spend // by the chat's group, on this day of dashd's time zone
	turn  factrows.Spend // by the turn at work
}

// spentBy returns the usage of the chat's group and its turn at work; nil where no operator asks.
func (s *Status) spentBy(ctx context.Context, c *chat) (*spent, error) {
	if !c.Spend || c.group == "" {
		return nil, nil
	}
	day := s.Now().Local().Format(time.DateOnly)
	group, err := factrows.FolderSpend(ctx, s.Store.Reader, c.group, day, day)
	if err != nil {
		return nil, err
	}
	all := &spent{today: group}
	if c.work.begun == 0 {
		return all, nil
	}
	running, err := s.Store.Turns(ctx, store.TurnList{ChatJID: c.ChatJID, State: msg.TurnRunning, Limit: 1})
	if err != nil || len(running) == 0 {
		return all, err
	}
	used, err := factrows.Usage(ctx, s.Store.Reader, running[0].ID)
	all.turn = factrows.Spend{Turns: 1, Input: used.Input, Output: used.Output, CostUSD: used.CostUSD}
	return all, err
}

// home returns the chat's group, "" for none: the one that answers the user who asks.
func (s *Status) home(ctx context.Context, c *chat) (string, error) {
	if c.Sender == "" && c.info.Kind == msg.ChatDM {
		_, user, err := s.Store.LastUser(ctx, c.ChatJID)
		if err != nil {
			return "", err
		}
		c.Sender = cmp.Or(user, c.ChatJID) // the address of the user on Telegram
	}
	routes, err := s.Store.Routes(ctx)
	if err != nil {
		return "", err
	}
	groups, err := s.Store.Groups(ctx)
	if err != nil {
		return "", err
	}
	return routecheck.NewHomes(routes, groups).Answering(&c.info, c.engaged.Folder, c.Sender, c.SenderName), nil
}

func (s *Status) topic(ctx context.Context, c *chat) (string, error) {
	fork, err := s.Store.ForkOfThread(ctx, c.ChatJID, c.ThreadID)
	if err != nil {
		return "", err
	}
	if fork != nil && fork.Folder == c.group {
		return cmp.Or(c.info.StickyTopic, fork.RunsIn()), nil
	}
	bound, err := factrows.TopicOfThread(ctx, s.Store.Reader, c.ChatJID, c.ThreadID)
	return msg.EffectiveTopic(c.info.StickyTopic, cmp.Or(c.ThreadID, c.Topic), c.ThreadID, bound), err
}

// maxCounted bounds the turns of a place that are counted: a chat may have a hundred thousand.
const maxCounted = 1000

// work is the progress of a place's turns. A zero time means none.
type work struct {
	place   *int         // as in Report
	open    int          // turns that have not ended, at most maxCounted+1
	begun   int64        // when the running one began
	waits   msg.WaitsFor // of the oldest queued one
	retryAt int64        // when it is tried again
	asked   string       // who is to answer the question of the running one, "" for none
	saidAt  int64        // when the agent of the running one said something last, of its work or by beginning
	another bool         // the agent for the oldest queued one works for another chat or thread
}

func (s *Status) work(ctx context.Context, c *chat) (w work, err error) {
	place := c.Topic
	if c.ThreadID != "" {
		place = "" // the thread's turns have more than one
	}
	turns, err := rows.CountOpenTurns(ctx, s.Store.Reader, c.ChatJID, c.ThreadID, place, maxCounted+1)
	w.open = turns.Open
	switch {
	case err != nil || turns.Open == 0:
		return w, err
	case turns.Running > 0:
		w.place, w.begun = new(0), turns.Begun
		return w, s.atWork(ctx, c, &w)
	}
	oldest, err := s.Store.Turn(ctx, turns.Oldest)
	if err != nil || oldest == nil {
		return w, err
	}
	if oldest.NotBefore > c.now {
		w.waits, w.retryAt = oldest.WaitsFor, oldest.NotBefore
	}
	before, err := rows.QueuedBefore(ctx, s.Store.Reader, oldest.ID, c.now)
	w.place = new(1 + before)
	if err == nil {
		var running []*msg.Turn
		running, _, err = factrows.OldestTurns(ctx, s.Store.Reader, msg.TurnRunning, maxListed)
		w.another = slices.ContainsFunc(running, func(t *msg.Turn) bool { return t.Lane() == oldest.Lane() })
	}
	return w, err
}

// atWork reads the questions and the progress of the running turns of a place.
func (s *Status) atWork(ctx context.Context, c *chat, w *work) error {
	asks, err := factrows.ChatAsks(ctx, s.Store.Reader, c.ChatJID, c.ThreadID)
	if err != nil {
		return err
	}
	for _, a := range asks {
		if !msg.IsBudget(a.AskID) {
			w.asked = cmp.Or(a.Who.Label, "anyone here")
		}
	}
	all, err := rows.ChatWork(ctx, s.Store.Reader, c.ChatJID)
	w.saidAt = w.begun
	for _, at := range all {
		w.saidAt = max(w.saidAt, at.UpdatedAt)
	}
	return err
}

func (s *Status) now() int64 { return s.Now().UnixMilli() }

// orNull returns a pointer to v, or nil for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
