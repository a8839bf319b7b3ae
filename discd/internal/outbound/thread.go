package outbound

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/msg"
)

// openThread creates the thread of a row at the message whose id it has, if it is that of a
// fork. Otherwise the thread is not one of ours, and it returns refused. A thread that exists
// already is no error.
func (s *Sender) openThread(ctx context.Context, m *msg.Message, refused error) error {
	fork, err := s.Store.ForkOfThread(ctx, m.ChatJID, m.ThreadID)
	if err != nil {
		return err
	}
	if fork == nil {
		return refused
	}
	channel, err := channelOf(m.ChatJID, "")
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(strings.TrimPrefix(fork.Topic, msg.TopicSigil), msg.TopicSigil, " ")
	path := "channels/" + channel + "/messages/" + m.ThreadID + "/threads"
	err = s.API.Call(ctx, http.MethodPost, path, discordapi.Params{"name": name[:min(len(name), maxThreadName)]}, nil)
	if err != nil && !discordapi.RefusedFor(err, threadExists) {
		return fmt.Errorf("create a thread at message %s: %w", m.ThreadID, err)
	}
	return nil
}

// maxThreadName bounds a thread's name, in characters. Topics are ASCII.
const maxThreadName = 100
