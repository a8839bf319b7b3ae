package outbound

import (
	"context"
	"errors"
	"strings"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

const (
	// nonceLifetime is how long Discord recognizes a message that is sent again with its nonce. Its
	// documentation says: some minutes.
	nonceLifetime = 2 * time.Minute
	// maxClockSkew is how far our clock may be ahead of Discord's.
	maxClockSkew = time.Minute
)

// Find implements adapter.Finder. While Discord knows the nonce, sending the part again finds it.
// Later it is searched for in the channel.
func (s *Sender) Find(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	if !c.sends() { // it may be repeated
		return "", nil
	}
	if age := s.Now().Sub(time.UnixMilli(m.ReceivedAt)); age < 0 || age >= nonceLifetime { // it was not sent before that
		return s.search(ctx, m, c)
	}
	id, err := s.Send(ctx, m, p)
	var f *adapter.Failure
	var remark *adapter.Remark
	switch {
	case errors.As(err, &f) && f.Class == msg.Permanent:
		return "", nil // it is refused; Send will return why
	case errors.As(err, &remark):
		return id, nil
	}
	return id, err
}

// search looks for a message of the bot that has the content of a part and belongs to no other part.
// Its failure is permanent if that cannot be found out.
func (s *Sender) search(ctx context.Context, m *msg.Message, c call) (platformID string, err error) {
	me, err := s.API.Me(ctx)
	if err != nil {
		return "", discordapi.Failure(err)
	}
	since := discordapi.SnowflakeAt(m.ReceivedAt - maxClockSkew.Milliseconds())
	id, err := s.API.Find(ctx, c.channel, since, func(sent *discordapi.Message) (bool, error) {
		if sent.Author == nil || sent.Author.ID != me.ID || !c.matches(sent) {
			return false, nil
		}
		other, err := s.Store.MessageByPlatformID(ctx, m.ChatJID, sent.ID)
		return other == nil, err
	})
	switch {
	case discordapi.RefusedFor(err, unknownChannel):
		return "", nil // a thread that was not created yet: Send will do that, or return why it cannot
	case errors.Is(err, discordapi.ErrUncertain):
		return "", &adapter.Failure{Class: msg.Permanent, Err: err}
	case err != nil:
		return "", discordapi.Failure(err)
	}
	return id, nil
}

// matches reports whether a message has the content that a call sends.
func (c call) matches(sent *discordapi.Message) bool {
	content, _ := c.body["content"].(string)
	poll, _ := c.body["poll"].(discordapi.Poll)
	question := discordapi.PollMedia{}
	if sent.Poll != nil {
		question = sent.Poll.Question
	}
	return strings.TrimSpace(sent.Content) == strings.TrimSpace(content) && question == poll.Question &&
		(c.file != nil) == (len(sent.Attachments) > 0)
}
