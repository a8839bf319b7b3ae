package outbound

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
)

const (
	// nonceLifetime is how long Discord recognizes a message that is sent again with its nonce. Its
	// documentation says: some minutes.
	nonceLifetime = 2 * time.Minute
	// maxClockSkew is how far our clock may have been ahead of Discord's when a row was stored: some hours
	// after a wrong time zone, or a dead battery, was corrected.
	maxClockSkew = 3 * time.Hour
)

// Find implements adapter.Finder. While Discord knows the nonce, sending the part again finds it.
// Later it is searched for in the channel.
func (s *Sender) Find(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	// it was not sent before that
	if age := s.Now().Sub(time.UnixMilli(m.ReceivedAt)); age < 0 || age >= nonceLifetime {
		return s.search(ctx, m, c)
	}
	id, err := s.Send(ctx, m, p)
	var f *adapter.Failure
	if errors.As(err, &f) && f.Class == msg.Permanent {
		return "", nil // it is refused; Send will return why, and the other form in which it is sent
	}
	return id, err
}

// search looks for a message of the bot that has the content of a part, in one of the forms in which it may have been
// sent, and belongs to no other part and no preview: in its thread, and in the channel of that, to which it goes on
// from a thread that is closed or gone. Its failure is permanent if that cannot be found out.
func (s *Sender) search(ctx context.Context, m *msg.Message, c call) (platformID string, err error) {
	forms := s.forms(m, c)
	for len(forms) > 0 {
		channel := forms[0].channel
		here := func(form call) bool { return form.channel == channel }
		platformID, err = s.searchIn(ctx, m, channel, func(sent *discordapi.Message) bool {
			return slices.ContainsFunc(forms, func(form call) bool { return here(form) && form.matches(sent) })
		})
		if err != nil || platformID != "" {
			return platformID, err
		}
		forms = slices.DeleteFunc(forms, here)
	}
	return "", nil
}

// forms are a call and its marked copy, and all that Send returns in place of either when it is refused, as far as
// their contents differ.
func (s *Sender) forms(m *msg.Message, c call) []call {
	all := []call{c, s.Mark(c).(call)}
	for i := 0; i < len(all); i++ {
		form := all[i]
		if form.file != nil {
			all = append(all, form.instead(tooLargeHere(form.file)), form.instead(form.file.Refused("Discord")))
		}
		if m.ThreadID == "" || form.entry == leave {
			continue
		}
		for _, note := range notes(m) {
			if moved, ok := s.toChannel(m, form, note); ok {
				all = append(all, moved)
			}
		}
	}
	return all
}

// searchIn looks for a message of the bot in a channel that matches and belongs to no other part and no preview.
func (s *Sender) searchIn(ctx context.Context, m *msg.Message, channel string,
	matches func(*discordapi.Message) bool) (platformID string, err error) {
	me, err := s.API.Me(ctx)
	if err != nil {
		return "", discordapi.Failure(err)
	}
	since := discordapi.SnowflakeAt(m.ReceivedAt - maxClockSkew.Milliseconds())
	id, err := s.API.Find(ctx, channel, since, func(sent *discordapi.Message) (bool, error) {
		if sent.Author == nil || sent.Author.ID != me.ID || !matches(sent) {
			return false, nil
		}
		if preview, err := rows.ShownPreview(ctx, s.Store.Reader, m.ChatJID, sent.ID); err != nil || preview != nil {
			return false, err
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
