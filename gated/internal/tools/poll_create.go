package tools

import (
	"context"
	"math"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

type pollCreateIn struct {
	Question string   `json:"question" jsonschema:"the question, on one line"`
	Options  []string `json:"options" jsonschema:"what users choose from, 2 to 10 different texts"`
	Multiple bool     `json:"multiple,omitempty" jsonschema:"true: a user may choose several options"`
	ClosesAt string   `json:"closes_at,omitempty" jsonschema:"when the poll closes by itself, as in 2026-11-23T18:00:00+01:00; left out: when you close it (on Discord after 32 days at the latest)"`
	Topic    string   `json:"topic,omitempty" jsonschema:"where in this chat: a topic such as #deploy, or a thread as in the prompt; left out: where the message that you answer came from"`
}

type pollCreateOut struct {
	PollID    int64  `json:"poll_id" jsonschema:"for poll_close, and as in poll_list"`
	MessageID int64  `json:"message_id" jsonschema:"the message's id, as in prompts"`
	ClosesAt  string `json:"closes_at,omitempty" jsonschema:"when it closes by itself"`
}

// Bounds of polls that no platform exceeds, in characters.
const (
	maxPollQuestion = 300
	maxPollOption   = 200
	// maxPollTime bounds how long a poll may be open.
	maxPollTime = 366 * 24 * time.Hour
)

func pollCreate() Tool {
	return define(Tool{
		Name: "poll_create", Title: "Make a poll", Kind: Adds,
		Description: "Posts a poll in this chat: the platform's own on Telegram and Discord, elsewhere a text with numbered options. " +
			"Use it when a group must choose and the options are known. Votes start no turn: read them with poll_list. Your group may have 20 open polls in a chat. Ask a single user in your answer instead.",
		Bounds: map[string]Bound{
			"question": Text(1, maxPollQuestion), "options": List(msg.MinPollOptions, msg.MaxPollOptions),
			"options[]": Text(1, maxPollOption),
			"closes_at": Text(0, 40), "topic": Text(0, maxTopic),
		},
	}, func(ctx context.Context, c *Caller, in pollCreateIn) (out pollCreateOut, err error) {
		return once(ctx, c, in, func(tx *store.Tx) (out pollCreateOut, err error) {
			poll, err := c.newPoll(in)
			if err == nil {
				err = checkOpenPolls(ctx, tx.Reader, c.Turn)
			}
			if err != nil {
				return out, err
			}
			m, err := c.outboundTo(ctx, tx, given(in.Topic))
			if err != nil {
				return out, err
			}
			m.Kind, m.Content = msg.KindPoll, poll.JSON()
			if out.MessageID, _, err = tx.PutMessage(m); err != nil {
				return out, err
			}
			stored := &msg.StoredPoll{MessageID: out.MessageID, Folder: c.Turn.Folder, ChatJID: m.ChatJID,
				Topic: c.Turn.Topic, Poll: *poll, CreatedAt: m.Timestamp}
			if err = rows.PutPoll(tx, stored); err != nil {
				return out, err
			}
			out.PollID, out.ClosesAt = stored.ID, timeText(poll.ClosesAt, time.Local)
			return out, c.activatePoll(ctx, tx, contextobjects.PollCreated, stored)
		})
	})
}

// checkOpenPolls returns a refusal if a turn's group has as many open polls in the chat as it may.
func checkOpenPolls(ctx context.Context, r store.Reader, t *msg.Turn) error {
	open, err := rows.PollsOf(ctx, r, t.ChatJID, t.Folder, msg.PollOpen, math.MaxInt64, maxPolls)
	if err == nil && len(open) == maxPolls {
		err = refuse("this chat has %d open polls, which is the limit: close those that are settled with poll_close, then make this one", maxPolls)
	}
	return err
}

// activatePoll makes a poll of the caller's chat an active context object.
func (c *Caller) activatePoll(ctx context.Context, tx *store.Tx, event contextobjects.Event, p *msg.StoredPoll) error {
	return c.activateObject(ctx, tx, event, contextobjects.Object{
		Kind: msg.ContextPoll, ID: msg.ContextObjectID(msg.ContextPoll, p.ID), SourceMessageID: p.MessageID,
		Label: p.Poll.Question, CreatedBy: c.origin.Sender, CreatedByBot: true, ClosedAt: p.ClosedAt,
	})
}

// newPoll returns the poll that the caller asks for, or a refusal that names the limit of its chat.
func (c *Caller) newPoll(in pollCreateIn) (*msg.Poll, error) {
	if err := c.checkReaders(); err != nil {
		return nil, err
	}
	limits, _ := msg.PollLimitsOf(c.Turn.ChatJID) // a chat that users read has some
	now := c.Services.now()
	poll := &msg.Poll{Question: oneLine(c.clean(in.Question)), Multiple: in.Multiple}
	for _, option := range in.Options {
		poll.Options = append(poll.Options, oneLine(c.clean(option)))
	}
	if in.ClosesAt != "" {
		at, err := time.Parse(time.RFC3339, in.ClosesAt)
		if err != nil {
			return nil, refuse("closes_at %.40q is no time: write it as in 2026-11-23T18:00:00+01:00", in.ClosesAt)
		}
		if poll.ClosesAt = at.UnixMilli(); poll.ClosesAt > now+maxPollTime.Milliseconds() {
			return nil, refuse("closes_at is more than a year away: leave it out and close the poll with poll_close")
		}
	}
	if err := limits.Check(poll, now); err != nil {
		return nil, refuse("%v: change that and call poll_create again", err)
	}
	if poll.ClosesAt == 0 && limits.MaxOpen != 0 {
		poll.ClosesAt = now + limits.MaxOpen
	}
	return poll, nil
}
