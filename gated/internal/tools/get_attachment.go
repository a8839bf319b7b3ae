package tools

import (
	"context"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/groupfiles"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// fetchWait bounds the wait for a download: below the time of a call.
	fetchWait = 20 * time.Second
	fetchPoll = 100 * time.Millisecond
)

type getAttachmentIn struct {
	MessageID int64 `json:"message_id" jsonschema:"the message that has the file"`
	N         int   `json:"n,omitempty" jsonschema:"which of its files, from 1; left out: the first"`
}

type getAttachmentOut struct {
	Path string `json:"path" jsonschema:"the file, relative to your folder"`
	Name string `json:"name" jsonschema:"its name on the platform"`
	MIME string `json:"mime" jsonschema:"its type, as the platform says"`
	Size int64  `json:"size" jsonschema:"bytes"`
}

func getAttachment() Tool {
	return define(Tool{
		Name: "get_attachment", Title: "Get a file of a message", Kind: Sets,
		Description: "Puts a file of a message into your folder, and returns its path. Files of the messages that you answer are there already, at the paths in the prompt: " +
			"use this for files of other messages, such as observed ones or search results.",
		Bounds: map[string]Bound{"message_id": Number(1, maxID), "n": Number(0, 100)},
	}, func(ctx context.Context, c *Caller, in getAttachmentIn) (out getAttachmentOut, err error) {
		n := max(in.N, 1)
		m, err := c.fetched(ctx, in.MessageID, n)
		if err != nil {
			return out, err
		}
		a := m.Attachments[n-1]
		switch {
		case a.Error != "":
			return out, refuse("the file %.100q of message %d cannot be had: %s", a.Name, m.ID, a.Error)
		case a.Path == "":
			return out, refuse("the file %.100q of message %d is gone: ask its sender to send it again", a.Name, m.ID)
		}
		if out.Path, err = c.Services.Files.Take(c.Turn.Folder, m, n-1); err != nil {
			c.Services.Log.Warn("file of a message not copied", "request", c.Request, "turn", c.Turn.ID, "row", m.ID,
				"file", a.Path, "err", err)
			return out, refuse("the file %.100q of message %d cannot be copied into your folder: %s. Or go on without it", a.Name, m.ID, groupfiles.Problem(err))
		}
		out.Name, out.MIME, out.Size = a.Name, a.MIME, a.Size
		return out, c.inspected(ctx, m, &a)
	})
}

// inspected makes the file of a message of the turn's chat and topic an active context object: the agent fetched it to
// look into it.
func (c *Caller) inspected(ctx context.Context, m *msg.Message, a *msg.Attachment) error {
	if m.ChatJID != c.Turn.ChatJID {
		return nil
	}
	return c.Services.Store.Write(ctx, func(tx *store.Tx) error {
		o := contextobjects.Object{ChatJID: m.ChatJID, Kind: msg.MediaKind(a.MIME), SourceMessageID: m.ID,
			Label: c.clean(a.Name)}
		same, err := sameTopic(ctx, tx.Reader, c.Turn, m)
		if err != nil || !same {
			return err
		}
		if err := c.completeObject(ctx, tx, &o); err != nil {
			return err
		}
		_, err = c.Services.Objects.Activate(tx, contextobjects.MediaInspected, o, c.Services.now())
		return err
	})
}

// fetched returns a message that the caller may see, with at least n files, once these are downloaded.
func (c *Caller) fetched(ctx context.Context, id int64, n int) (*msg.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	st := c.Services.Store
	m, err := c.withFiles(ctx, id, n)
	if err != nil {
		return nil, err
	}
	if m.PendingFiles > 0 {
		err := c.write(ctx, func(tx *store.Tx) error { return rows.WantFiles(tx, id) })
		if err == nil {
			err = c.place.park()
		}
		if err != nil {
			return nil, err
		}
	}
	poll := time.NewTicker(fetchPoll)
	defer poll.Stop()
	for m.PendingFiles > 0 {
		select {
		case <-ctx.Done():
		case <-poll.C:
			m, err = st.Message(ctx, id)
		}
		if ctx.Err() != nil {
			return nil, refuse("the files of message %d are still being downloaded: call again in a minute, or go on without them", id)
		}
		if err != nil {
			return nil, err
		}
		if m == nil || n > len(m.Attachments) {
			return nil, refuse("message %d is gone", id)
		}
	}
	return m, nil
}

// mayFetch reports whether the files of an inbound message are for a group within the caller's reach: it got the
// message, or this came along with one of the run's own chat.
func (c *Caller) mayFetch(m *msg.Message) bool {
	if m.Reason == msg.ReasonQuoted {
		return m.FilesFor("") && c.isOwn(m.ChatJID)
	}
	return c.Reaches(m.RoutedTo) && m.FilesFor(m.RoutedTo)
}

// withFiles returns a message with at least n files that was routed to a group within the caller's reach, or that such
// a group has sent.
func (c *Caller) withFiles(ctx context.Context, id int64, n int) (*msg.Message, error) {
	m, err := c.CheckMessage(ctx, c.Services.Store.Reader, id)
	switch {
	case err != nil:
		return nil, err
	case m.Direction == msg.In && !c.mayFetch(m):
		return nil, refuse("message %d was not for your group, and its files are not fetched", id)
	case len(m.Attachments) == 0:
		return nil, refuse("message %d has no files", id)
	case n > len(m.Attachments):
		return nil, refuse("message %d has %d files: give n from 1 to %d", id, len(m.Attachments), len(m.Attachments))
	}
	return m, nil
}
