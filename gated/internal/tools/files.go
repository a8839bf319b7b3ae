package tools

import (
	"cmp"
	"context"
	"errors"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
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

// checkReaders returns a refusal in a chat that no adapter delivers to.
func (c *Caller) checkReaders() error {
	if msg.NoUsers(c.Turn.ChatJID) {
		return refuse("no user reads this chat: put it into your answer")
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

const (
	// maxPath bounds a path, and maxFileName a file's name, in characters.
	maxPath     = 1000
	maxFileName = 120
	dayMS       = 24 * 60 * 60 * 1000
)

type sendFileIn struct {
	Path    string `json:"path" jsonschema:"the file, relative to your folder, such as out/report.pdf"`
	Caption string `json:"caption,omitempty" jsonschema:"text with the file, in markdown; a long one follows as a message of its own"`
	Name    string `json:"name,omitempty" jsonschema:"the file's name as users see it; left out: its own"`
	Topic   string `json:"topic,omitempty" jsonschema:"where in this chat: a topic such as #deploy, or a thread as in the prompt; left out: where the message that you answer came from"`
}

type sendFileOut struct {
	MessageID int64  `json:"message_id" jsonschema:"the message's id, as in prompts"`
	Name      string `json:"name" jsonschema:"the file's name as users see it"`
	Size      int64  `json:"size" jsonschema:"bytes"`
}

func sendFile() Tool {
	return define(Tool{
		Name: "send_file", Title: "Send a file", Kind: Adds,
		Description: "Sends a file of your folder into this chat at once, before your answer. " +
			"The file is copied at once, so later changes have no effect. Telegram takes at most 50 MB (100 MB where " +
			"its server is run with --local), Discord 10 MB, other chats 100 MB. Pictures are shown as pictures. " +
			"Send no links to files: users cannot open your paths.",
		Bounds: map[string]Bound{
			"path": Text(1, maxPath), "caption": Text(0, maxText), "name": Text(0, maxFileName),
			"topic": Text(0, maxTopic),
		},
	}, func(ctx context.Context, c *Caller, in sendFileIn) (out sendFileOut, err error) {
		if err := c.checkReaders(); err != nil {
			return out, err
		}
		in.Caption = c.markdown(in.Caption)
		var a msg.Attachment
		out, err = onceAfter(ctx, c, in, func() error {
			if err := c.checkDailyFiles(ctx, c.Services.Store.Reader, 0); err != nil {
				return err
			}
			local, err := c.Services.Store.DaemonCursor(ctx, msg.DaemonOf(c.Turn.ChatJID), msg.LocalServer)
			if err != nil {
				return err
			}
			a, err = c.Services.Files.Publish(c.Turn.Folder, in.Path, c.Redact(in.Name),
				msg.MaxUpload(c.Turn.ChatJID, local != ""), c.Services.Now())
			return asRefusal(err)
		}, func(tx *store.Tx) (out sendFileOut, err error) {
			m, err := c.outboundTo(ctx, tx, given(in.Topic))
			if err != nil {
				return out, err
			}
			if err := c.checkDailyFiles(ctx, tx.Reader, a.Size); err != nil {
				return out, err
			}
			m.Kind, m.Content, m.Attachments = msg.KindFile, in.Caption, []msg.Attachment{a}
			out.Name, out.Size = a.Name, a.Size
			out.MessageID, _, err = tx.PutMessage(m)
			return out, err
		})
		if err != nil && a.Path != "" {
			c.discard(a)
		}
		return out, err
	})
}

// checkDailyFiles returns a refusal if the chat has no room for size more bytes today. It is asked before the file is
// copied, too: a copy that is not sent fills the disk all the same.
func (c *Caller) checkDailyFiles(ctx context.Context, r store.Reader, size int64) error {
	stored, err := r.ChatFileBytes(ctx, c.Turn.ChatJID, c.Services.now()-dayMS)
	if limit := c.Services.MediaDaily; err == nil && (stored >= limit || stored+size > limit) {
		err = refuse("this chat has %d MB of files in a day, and %d MB is the limit: send no more today, and say so",
			stored>>20, limit>>20)
	}
	return err
}

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
		Description: "Puts a file of a message into your folder, and returns its path. " +
			"Files of the messages that you answer are there already, at the paths in the prompt: use this for files " +
			"of other messages, such as observed ones or search results.",
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
			return out, refuse("the file %.100q of message %d cannot be copied into your folder: %s. "+
				"Or go on without it",
				a.Name, m.ID, groupfiles.Problem(err))
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
			return nil, refuse("the files of message %d are still being downloaded: call again in a minute, "+
				"or go on without them", id)
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
