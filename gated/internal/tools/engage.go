package tools

import (
	"context"
	"net/http"
	"strings"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

type engageIn struct {
	JID   string `json:"jid" jsonschema:"the chat, as in <turn>"`
	Topic string `json:"topic" jsonschema:"the place in the chat, as in <turn>: a thread or a topic; empty for the chat outside of both. The topic of <turn> means its place"`
}

type engageOut struct {
	Engaged      bool   `json:"engaged" jsonschema:"whether every message of the place now starts a turn"`
	Folder       string `json:"folder" jsonschema:"the group that answers there, empty for none"`
	EngagedUntil int64  `json:"engaged_until" jsonschema:"until when, in unix milliseconds, 0 while not engaged"`
}

// engageBounds are those of both tools. A place may be a thread of any platform.
func engageBounds() map[string]Bound {
	return map[string]Bound{"jid": Text(3, maxJID), "topic": Text(0, maxTopic)}
}

// maxJID bounds the address of a chat, in characters.
const maxJID = 300

func engage() Tool {
	return define(Tool{
		Name: "engage", Title: "Listen in a place", Kind: Sets,
		Description: "Makes every message of a place start a turn of your group for a while, without a mention. " +
			"Use it when a user asks you to follow a conversation, or to hear the answers in a thread that " +
			"you have begun.",
		Bounds: engageBounds(),
	}, func(ctx context.Context, c *Caller, in engageIn) (out engageOut, err error) {
		return onceAfter(ctx, c, in, func() (err error) {
			out, err = c.engagement(ctx, in, routeapi.EngagementRequest{Folder: c.Turn.Folder})
			return err
		}, func(*store.Tx) (engageOut, error) { return out, nil })
	})
}

// engagement asks routd to open the window that a call names, or to end it if the request has a TTL. That may be
// repeated. It returns a refusal unless the chat is the caller's, or one that it may write to; a group within its reach
// may also have a fork in the chat of another group, which the caller may end. Routd has a check of its own: it knows
// who is engaged.
func (c *Caller) engagement(ctx context.Context, in engageIn, request routeapi.EngagementRequest) (out engageOut,
	err error) {
	request.JID, request.Caller, request.Sender = &in.JID, c.Turn.Folder, c.origin.Sender
	fork, err := c.forkIn(ctx, c.Services.Store.Reader, in)
	if err != nil {
		return out, err
	}
	c.replaced = in
	if fork != nil && request.TTL != nil {
		return out, c.endForkWindow(ctx, request, fork)
	}
	if !c.isOwn(in.JID) {
		if err := c.CheckChat(ctx, c.Services.Store.Reader, in.JID); err != nil {
			return out, err
		}
	}
	place, err := c.placeToHear(ctx, in, fork)
	if err != nil {
		return out, err
	}
	request.Topic, c.replaced = &place, engageIn{in.JID, place}
	var answer routeapi.Engagement
	if err = c.Services.Routd.Do(ctx, http.MethodPost, routeapi.EngagementPath, request, &answer); err != nil {
		return out, explainEngagement(request, err)
	}
	if answer.Folder != nil && answer.Until != nil {
		out = engageOut{Engaged: true, Folder: *answer.Folder, EngagedUntil: *answer.Until}
	}
	return out, nil
}

// placeToHear is the place that a call about engagement means. A fork in a thread of its own is where that thread is.
// The topic of a session is no place if its messages are in a thread, or in a chat that is pinned to it: then it means
// the place of the messages.
func (c *Caller) placeToHear(ctx context.Context, in engageIn, fork *msg.Fork) (place string, err error) {
	switch {
	case fork != nil:
		return fork.Place(), nil
	case !strings.Contains(in.Topic, msg.TopicSigil):
		return in.Topic, checkThread(ctx, c.Services.Store.Reader, c.Turn, in.JID, in.Topic)
	}
	_, place, err = placeOf(ctx, c.Services.Store.Reader, c.turnIn(in.JID), in.Topic)
	return place, err
}

// checkThread returns a refusal unless a chat has a thread: a window elsewhere would hear nothing, and its end would
// leave the one that is meant. Where messages begin threads, each message is one.
func checkThread(ctx context.Context, r store.Reader, t *msg.Turn, jid, thread string) error {
	if thread == "" || jid == t.ChatJID && thread == t.ThreadID {
		return nil
	}
	has, err := rows.HasThread(ctx, r, jid, thread)
	if err != nil || has {
		return err
	}
	if m, err := r.MessageByPlatformID(ctx, jid, thread); err != nil || m != nil {
		return err
	}
	return refuse("chat %.100q has no thread %.80q: give the place of <turn>, which is %q here, a topic such "+
		"as #deploy, or \"\" for the chat outside of threads",
		jid, thread, t.Place)
}

// explainEngagement turns an error of routd into a refusal if the model can act on it.
func explainEngagement(request routeapi.EngagementRequest, err error) error {
	switch apierr.KindOf(err) {
	case apierr.Forbidden:
		return refuse("%.100q is out of reach: %v", *request.JID, err)
	case apierr.BadRequest, apierr.NotFound, apierr.Conflict:
		return refuse("%v: take jid and place from <turn>", err)
	case apierr.Unavailable:
		return refuse("routd, which keeps engagement, does not answer now: nothing has changed, " +
			"so try again later, once")
	}
	return err
}

func disengage() Tool {
	return define(Tool{
		Name: "disengage", Title: "Stop listening in a place", Kind: Removes,
		Description: "Ends what engage or an answer of yours has begun: messages of the place start no " +
			"turn any more, unless they mention you or reply to you. Use it when a conversation is over, " +
			"or a user asks you to be quiet. With the topic of a fork it ends the fork, and nothing else: " +
			"what replies to its messages, or is written in its thread, runs in the parent topic again. " +
			"Other places of the chat stay as they are.",
		Bounds: engageBounds(),
	}, func(ctx context.Context, c *Caller, in engageIn) (out engageOut, err error) {
		return onceAfter(ctx, c, in, func() (err error) {
			out, err = c.engagement(ctx, in, routeapi.EngagementRequest{TTL: new(int64)})
			return err
		}, func(tx *store.Tx) (engageOut, error) {
			fork, err := c.forkIn(ctx, tx.Reader, in)
			if err != nil || fork == nil {
				return out, err
			}
			return out, tx.EndFork(in.JID, in.Topic, c.Services.now())
		})
	})
}
