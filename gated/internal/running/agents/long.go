package agents

import (
	"context"
	"errors"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/groupfiles"
	"arizuko/pkg/msg"
)

// dayMS is the time in which the files of a chat are counted, in ms.
const dayMS = 24 * 60 * 60 * 1000

// attachLong makes files of the tables and code blocks of an answer that do not fit into one message of its platform,
// and returns the text with a line in place of each. A block for which there is no room as a file stays in the text.
func (f *files) attachLong(t *msg.Turn, text string, run *runInfo) (short string, files []msg.Attachment) {
	chat, found, err := f.deliveryChat(t)
	if err != nil || !found {
		return text, nil // the write that follows meets the same error, and repeats itself
	}
	return groupfiles.SplitLong(chat, text, func(name, text string, before int64) (msg.Attachment, error) {
		a, err := f.attachText(chat, name, run.setup.redact(text), before)
		if err != nil {
			f.env.log.Warn("long block not sent as a file", "turn", t.ID, "run", run.row.ID, "chat", chat, "file", name,
				"err", err)
		}
		return a, err
	})
}

// deliveryChat is the chat that gets the answers of a turn; there is none if another group does.
func (f *files) deliveryChat(t *msg.Turn) (chat string, found bool, err error) {
	stored, err := f.env.st.Turn(f.env.ctx, t.ID)
	if err != nil || stored == nil {
		return "", false, err
	}
	escalated, err := rows.Escalated(f.env.ctx, f.env.st.Reader, stored)
	return stored.ChatJID, !escalated, err
}

// attachText stores a text as a file of a message into a chat, if the chat's files of the day, and the bytes before it
// of the same message, leave room for it.
func (f *files) attachText(chat, name, text string, before int64) (a msg.Attachment, err error) {
	size := int64(len(text))
	if limit := f.env.cfg.MediaDaily; limit > 0 {
		stored, err := f.env.st.ChatFileBytes(f.env.ctx, chat, f.env.now()-dayMS)
		if err != nil {
			return a, err
		}
		if stored+before+size > limit {
			return a, errors.New("the chat's files of the day leave no room for it (MEDIA_DAILY)")
		}
	}
	return f.groups.PublishText(name, text, f.env.cfg.Now())
}

// discard removes the files of an answer that was not stored.
func (f *files) discard(ctx context.Context, files []msg.Attachment) {
	for _, a := range files {
		if err := f.groups.Discard(a); err != nil && ctx.Err() == nil {
			f.env.log.Error("file of an answer that is not sent stays", "file", a.Path, "err", err)
		}
	}
}
