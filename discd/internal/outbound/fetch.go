package outbound

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// Fetch implements adapter.Fetcher. The URL of a file is valid for about a day; after that its message has a fresh one.
func (s *Sender) Fetch(ctx context.Context, m *msg.Message, ref string, w io.Writer) error {
	err := s.API.Download(ctx, ref, w)
	var refused *adapter.Failure
	if !errors.As(err, &refused) || refused.Class != msg.Permanent {
		return err
	}
	fresh, lookup := s.freshURL(ctx, m, ref)
	switch {
	case lookup != nil:
		f := discordapi.Failure(lookup)
		f.Err = fmt.Errorf("%w, and its message cannot be read: %w", refused.Err, lookup)
		return f
	case fresh == "" || fresh == ref:
		return err
	}
	return s.API.Download(ctx, fresh, w)
}

// freshURL is the present URL of a file of a message, "" if the message no longer has it.
func (s *Sender) freshURL(ctx context.Context, m *msg.Message, ref string) (string, error) {
	channel, err := s.channelOf(m.ChatJID, m.ThreadID)
	id := messageID(m.PlatformID)
	if err != nil || id == "" {
		return "", err
	}
	raw, err := s.API.Message(ctx, channel, id)
	if err != nil {
		return "", err
	}
	var now discordapi.Message
	if err := json.Unmarshal(raw, &now); err != nil {
		return "", err
	}
	for _, f := range inbound.Files(&now) {
		if unsigned(f.URL) == unsigned(ref) {
			return f.URL, nil
		}
	}
	return "", nil
}

// unsigned is a URL without its signature, which is all that changes.
func unsigned(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}
