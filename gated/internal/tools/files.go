package tools

import (
	"cmp"
	"context"
	"errors"
	"time"

	"arizuko/gated/internal/running/groupfiles"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Files reads and writes the folders of groups.
type Files interface {
	// Publish copies a file of a group's folder into the media folder. limit is in bytes.
	// An error about the file is a *groupfiles.Refusal.
	Publish(folder, path, name string, limit int64, now time.Time) (msg.Attachment, error)
	// PublishText stores a text in the media folder.
	PublishText(name, text string, now time.Time) (msg.Attachment, error)
	// Discard removes a file that Publish or PublishText has made and no message names.
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

// checkReaders returns a refusal in a chat between groups, which no adapter delivers to.
func (c *Caller) checkReaders() error {
	if msg.FamilyOf(c.Turn.ChatJID) == msg.PlatformGroup {
		return refuse("no user reads this chat, which is between groups: put it into your answer")
	}
	return nil
}

// change stores an outbound row of the caller's run that changes a message of its chat. It is delivered
// after that message, in the same thread. It returns a refusal for a message that the platform no longer knows.
func (c *Caller) change(ctx context.Context, tx *store.Tx, kind msg.Kind, of *msg.Message,
	content string) (out changedOut, err error) {
	if lost, err := tx.Unreachable(ctx, of); err != nil || lost != "" {
		return out, cmp.Or(err, refuse("message %d %s: send a new message", of.ID, lost))
	}
	m, err := c.outbound()
	if err != nil {
		return out, err
	}
	m.Kind, m.Content, m.Topic, m.ThreadID, m.TargetID = kind, content, of.Topic, of.ThreadID, of.PlatformID
	if of.Direction == msg.Out {
		m.DerivedFrom = of.ID
	}
	_, _, err = tx.PutMessage(m)
	return changedOut{OK: err == nil}, err
}

// checkSent returns a refusal unless a message of agents is, or will be, on the platform under an id that is known.
func checkSent(m *msg.Message) error {
	switch {
	case m.OutState == msg.OutFailed, m.OutState == msg.OutCancelled:
		return refuse("message %d was never sent: send a new message", m.ID)
	case m.PlatformID == "" && (m.OutState == msg.OutSent || m.OutState == msg.OutAmbiguous):
		return refuse("message %d has no id on the platform that is known, so it cannot be changed: send a new message",
			m.ID)
	}
	return nil
}

// discard removes files that no message names.
func (c *Caller) discard(files ...msg.Attachment) {
	for _, a := range files {
		if err := c.Services.Files.Discard(a); err != nil {
			c.Services.Log.Error("copy of a file that is not sent stays", "turn", c.Turn.ID, "file", a.Path, "err", err)
		}
	}
}

// splitLong makes files of the long blocks of a text, if the group asks for that, and returns the text with a line in
// place of each. A block for which there is no room as a file stays in the text.
func (c *Caller) splitLong(ctx context.Context, text string) (short string, files []msg.Attachment) {
	if c.Config.Long != groupconfig.LongFile {
		return text, nil
	}
	return groupfiles.SplitLong(c.Turn.ChatJID, text, func(name, text string, before int64) (a msg.Attachment,
		err error) {
		text = c.Redact(text)
		if err = c.checkDailyFiles(ctx, c.Services.Store.Reader, before+int64(len(text))); err == nil {
			a, err = c.Services.Files.PublishText(name, text, c.Services.Now())
		}
		if err != nil {
			c.Services.Log.Warn("long block not sent as a file", "turn", c.Turn.ID, "chat", c.Turn.ChatJID, "file",
				name, "err", err)
		}
		return a, err
	})
}
