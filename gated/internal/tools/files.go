package tools

import (
	"context"
	"errors"
	"time"

	"arizuko/gated/internal/groupfiles"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Files is what tools do with the folders of groups.
type Files interface {
	// Publish copies a file of a group's folder into the media folder. limit is in bytes.
	// An error about the file is a *groupfiles.Refusal.
	Publish(folder, path, name string, limit int64, now time.Time) (msg.Attachment, error)
	// Discard removes a copy that Publish has made and no message names.
	Discard(a msg.Attachment) error
	// Take copies attachment n, from 0, of a message into a group's folder, and returns its
	// path there.
	Take(folder string, m *msg.Message, n int) (path string, err error)
}

// asRefusal makes an error about a file one that the model can act on.
func asRefusal(err error) error {
	var refusal *groupfiles.Refusal
	if errors.As(err, &refusal) {
		return &Refusal{refusal.Error()}
	}
	return err
}

// platform is that of the caller's chat.
func (c *Caller) platform() string {
	platform, _ := msg.SplitJID(c.Turn.ChatJID)
	return platform
}

// checkReaders returns a refusal in a chat between groups, which no adapter delivers to.
func (c *Caller) checkReaders() error {
	if c.platform() == msg.PlatformGroup {
		return refuse("no user reads this chat, which is between groups: put it into your answer")
	}
	return nil
}

// change returns an outbound row of the caller's run that changes a message of its chat. It is delivered
// after that message, in the same thread.
func (c *Caller) change(ctx context.Context, tx *store.Tx, kind msg.Kind, of *msg.Message, content string) (*msg.Message, error) {
	m, err := c.outbound(ctx, tx, "")
	if err != nil {
		return nil, err
	}
	m.Kind, m.Content, m.Topic, m.ThreadID, m.TargetID = kind, content, of.Topic, of.ThreadID, of.PlatformID
	if of.Direction == msg.Out {
		m.DerivedFrom = of.ID
	}
	return m, nil
}

// checkSent returns a refusal unless a message of agents is, or will be, on the platform under an id that is known.
func checkSent(m *msg.Message) error {
	switch {
	case m.OutState == msg.OutFailed, m.OutState == msg.OutCancelled:
		return refuse("message %d was never sent: send a new message", m.ID)
	case m.PlatformID == "" && (m.OutState == msg.OutSent || m.OutState == msg.OutAmbiguous):
		return refuse("message %d has no id on the platform that is known, so it cannot be changed: send a new message", m.ID)
	}
	return nil
}
