package outbound

import (
	"context"
	"fmt"
	"time"

	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/slakd/internal/slackapi"
)

// maxClockSkew is how far our clock may be ahead of Slack's.
const maxClockSkew = 5 * time.Minute

// Find implements adapter.Finder.
func (s *Sender) Find(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	if !c.sends() { // it may be repeated
		return "", nil
	}
	matches, err := s.matcher(ctx, c)
	if err == nil {
		platformID, err = s.API.Find(ctx, c.channel, c.thread, m.ReceivedAt/1000-int64(maxClockSkew/time.Second), matches)
	}
	if err != nil {
		return "", slackapi.Failure(fmt.Errorf("search: %w", err))
	}
	return platformID, nil
}

// matcher recognizes the message of a call: by its tag, or by its file, since files have no tag.
func (s *Sender) matcher(ctx context.Context, c call) (func(*slackgo.Message) bool, error) {
	if c.method == postMessage {
		return c.tag.Is, nil
	}
	me, err := s.API.AuthTestContext(ctx)
	if err != nil {
		return nil, err
	}
	return func(m *slackgo.Message) bool { return slackapi.HasFile(m, me.UserID, c.file.Name, c.file.Size) }, nil
}
