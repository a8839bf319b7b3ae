package agents

import (
	"context"
	"errors"

	"arizuko/gated/internal/running/groupfiles"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// dayMS is the time in which the files of a chat are counted, in ms.
const dayMS = 24 * 60 * 60 * 1000

// attachLong makes files of the tables and code blocks of an answer that do not fit into one message of its
// platform, if the group asks for that, and returns the text with a line in place of each. A block for which
// there is no room as a file stays in the text.
func (r *run) attachLong(t *msg.Turn, text string) (short string, files []msg.Attachment) {
	if r.current.Long != groupconfig.LongFile || text == "" {
		return text, nil
	}
	chat, found, err := r.deliveryChat(t)
	if err != nil || !found {
		return text, nil // the write that follows meets the same error, and repeats itself
	}
	return groupfiles.SplitLong(chat, text, func(name, text string, before int64) (msg.Attachment, error) {
		a, err := r.m.attachText(chat, name, r.setup.redact(text), before)
		if err != nil {
			r.m.log.Warn("long block not sent as a file", "turn", t.ID, "run", r.row.ID, "chat", chat, "file", name, "err", err)
		}
		return a, err
	})
}

// deliveryChat is the chat that gets the answers of a turn; there is none if another group does.
func (r *run) deliveryChat(t *msg.Turn) (chat string, found bool, err error) {
	stored, err := r.m.st.Turn(r.m.ctx, t.ID)
	if err != nil || stored == nil {
		return "", false, err
	}
	escalated, err := r.m.st.Escalated(r.m.ctx, stored)
	return stored.ChatJID, !escalated, err
}

// attachText stores a text as a file of a message into a chat, if the chat's files of the day, and the bytes before it of
// the same message, leave room for it.
func (m *Manager) attachText(chat, name, text string, before int64) (a msg.Attachment, err error) {
	size := int64(len(text))
	if limit := m.cfg.MediaDaily; limit > 0 {
		stored, err := m.st.ChatFileBytes(m.ctx, chat, m.now()-dayMS)
		if err != nil {
			return a, err
		}
		if stored+before+size > limit {
			return a, errors.New("the chat's files of the day leave no room for it (MEDIA_DAILY)")
		}
	}
	return m.files.PublishText(name, text, m.cfg.Now())
}

// discard removes the files of an answer that was not stored.
func (m *Manager) discard(ctx context.Context, files []msg.Attachment) {
	for _, a := range files {
		if err := m.files.Discard(a); err != nil && ctx.Err() == nil {
			m.log.Error("file of an answer that is not sent stays", "file", a.Path, "err", err)
		}
	}
}
