package tools

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

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
		Description: "Sends a file of your folder into this chat at once, before your answer. The file is copied at once, so later changes have no effect. " +
			"Telegram takes at most 50 MB (100 MB where its server is run with --local), Discord 10 MB, other chats 100 MB. Pictures are shown as pictures. Send no links to files: users cannot open your paths.",
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
